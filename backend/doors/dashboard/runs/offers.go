package runs

import (
	"context"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// Agents queries the agent CLIs of one kind, or with "" of all kinds on this PC.
// Each first answer is as slow as its CLI.
type Agents interface {
	AgentModels(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error)
	AgentUsage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error)
	// CachedUsage returns the last answers without a query.
	CachedUsage() []api.AgentUsage
}

// Models answers GET /api/models (JOB-21).
func (s *Runs) Models(w http.ResponseWriter, r *http.Request) error {
	kind, err := s.agentOf(r)
	if err != nil {
		return err
	}
	result, err := s.jobs.AgentModels(r.Context(), kind)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Models{Agents: dto.Each(result.Agents, modelsShape)})
}

// Usage answers GET /api/usage (JOB-21).
func (s *Runs) Usage(w http.ResponseWriter, r *http.Request) error {
	kind, err := s.agentOf(r)
	if err != nil {
		return err
	}
	result, err := s.jobs.AgentUsage(r.Context(), kind)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Usage{Agents: dto.Each(result.Agents, usageShape)})
}

// CachedUsage answers GET /api/usage/kept: the cached usage. It starts no program, so
// a page may show it without a request of the owner.
func (s *Runs) CachedUsage(w http.ResponseWriter, _ *http.Request) error {
	usage := dto.Usage{Agents: []dto.AgentUsage{}}
	if s.jobs != nil {
		usage.Agents = dto.Each(s.jobs.CachedUsage(), usageShape)
	}
	return httpjson.WriteJSON(w, usage)
}

func (s *Runs) agentOf(r *http.Request) (bridge.AgentKind, error) {
	params, err := httpjson.Params(r)
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

func modelsShape(models api.AgentModels) dto.AgentModels {
	return dto.AgentModels{Agent: models.Agent, AsOf: models.AsOf, Note: models.Note, Models: dto.Each(models.Models, func(m api.Model) dto.Model {
		return dto.Model{ID: m.ID, Name: m.Name, Efforts: append([]string{}, m.Efforts...), Default: m.Default}
	})}
}

func usageShape(usage api.AgentUsage) dto.AgentUsage {
	return dto.AgentUsage{Agent: usage.Agent, AsOf: usage.AsOf, Plan: usage.Plan, Note: usage.Note, Limits: dto.Each(usage.Limits, func(l api.Limit) dto.Limit {
		return dto.Limit{Name: l.Name, UsedPercent: l.UsedPercent, ResetsAt: moment(l.ResetsAt)}
	})}
}
