package runs

import (
	"context"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/exchange"
	"bridge/backend/doors/dashboard/shape"
	"bridge/backend/platform/ipc/api"
)

// Agents is what the agent CLIs tell of themselves, of one kind or, for "", of all
// that are on this PC. The first answer of each is as slow as its CLI.
type Agents interface {
	AgentModels(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error)
	AgentUsage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error)
	// KeptUsage is what they told last, without asking any.
	KeptUsage() []api.AgentUsage
}

// Models answers GET /api/models (JOB-21).
func (s *Runs) Models(w http.ResponseWriter, r *http.Request) error {
	kind, err := s.agentOf(r)
	if err != nil {
		return err
	}
	told, err := s.jobs.AgentModels(r.Context(), kind)
	if err != nil {
		return err
	}
	return exchange.WriteJSON(w, shape.Models{Agents: shape.Each(told.Agents, modelsShape)})
}

// Usage answers GET /api/usage (JOB-21).
func (s *Runs) Usage(w http.ResponseWriter, r *http.Request) error {
	kind, err := s.agentOf(r)
	if err != nil {
		return err
	}
	told, err := s.jobs.AgentUsage(r.Context(), kind)
	if err != nil {
		return err
	}
	return exchange.WriteJSON(w, shape.Usage{Agents: shape.Each(told.Agents, usageShape)})
}

// KeptUsage answers GET /api/usage/kept: the same as far as it was told before. It
// starts nothing, so that a page may show it unasked.
func (s *Runs) KeptUsage(w http.ResponseWriter, _ *http.Request) error {
	kept := shape.Usage{Agents: []shape.AgentUsage{}}
	if s.jobs != nil {
		kept.Agents = shape.Each(s.jobs.KeptUsage(), usageShape)
	}
	return exchange.WriteJSON(w, kept)
}

func (s *Runs) agentOf(r *http.Request) (bridge.AgentKind, error) {
	params, err := exchange.Params(r)
	switch {
	case err != nil:
		return "", err
	case s.jobs == nil:
		return "", noJobs()
	case !params.Has("agent"):
		return "", nil
	}
	return bridge.ParseKind(params.Get("agent"))
}

func modelsShape(told api.AgentModels) shape.AgentModels {
	return shape.AgentModels{Agent: told.Agent, AsOf: told.AsOf, Note: told.Note, Models: shape.Each(told.Models, func(m api.Model) shape.Model {
		return shape.Model{ID: m.ID, Name: m.Name, Efforts: append([]string{}, m.Efforts...), Default: m.Default}
	})}
}

func usageShape(told api.AgentUsage) shape.AgentUsage {
	return shape.AgentUsage{Agent: told.Agent, AsOf: told.AsOf, Plan: told.Plan, Note: told.Note, Limits: shape.Each(told.Limits, func(l api.Limit) shape.Limit {
		return shape.Limit{Name: l.Name, UsedPercent: l.UsedPercent, ResetsAt: moment(l.ResetsAt)}
	})}
}
