package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"bridge/backend/agent/connect"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// agentsAge is how long the list of agent CLIs is cached: a search starts every
// CLI.
const agentsAge = 5 * time.Second

// agents caches the last list and serializes changes.
type agents struct {
	agents Agents // nil without agents
	// proofs returns what is known of the routes into the agents.
	proofs func(context.Context) ([]proof.Summary, error)
	now    func() time.Time
	log    *slog.Logger

	looking sync.Mutex // guards list and at; held during a search
	list    []connect.Agent
	at      time.Time

	changing sync.Mutex // held while a plan is applied
}

// known returns the list, at most agentsAge old. Concurrent callers share one
// search.
func (a *agents) known(ctx context.Context) []connect.Agent {
	a.looking.Lock()
	defer a.looking.Unlock()
	if a.list == nil || a.now().Sub(a.at) >= agentsAge {
		list := a.agents.List(ctx)
		if ctx.Err() != nil {
			return list // looked at half only
		}
		a.list, a.at = list, a.now()
	}
	return a.list
}

func (a *agents) forget() {
	a.looking.Lock()
	defer a.looking.Unlock()
	a.list = nil
}

// show answers GET /api/agents: the agent CLIs and their connections to Bridge.
func (a *agents) show(w http.ResponseWriter, r *http.Request) error {
	if a.agents == nil {
		return httpjson.WriteJSON(w, dto.Agents{Agents: []dto.Agent{}, Command: "bridge install", Looked: []string{}})
	}
	proofs, err := a.proofs(r.Context())
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Agents{
		Agents: dto.Each(a.known(r.Context()), func(known connect.Agent) dto.Agent { return agentShape(known, proofs) }), Command: a.agents.CommandLine("install"), Refused: a.agents.Refused(),
		Looked: dto.Each(a.agents.Looked(), func(folder string) string { return folder }),
	})
}

// connected answers GET /api/agents/connected: the connected agent CLIs, and
// whether their sessions may start agents without a question. It starts no CLI.
func (a *agents) connected(w http.ResponseWriter, _ *http.Request) error {
	list := dto.Connected{Agents: []dto.Standing{}}
	if a.agents == nil {
		return httpjson.WriteJSON(w, list)
	}
	standings, err := a.agents.Standings()
	if err != nil {
		return err
	}
	for _, standing := range standings {
		list.Agents = append(list.Agents, dto.Standing{Kind: standing.Kind, Jobs: standing.Jobs})
	}
	return httpjson.WriteJSON(w, list)
}

func agentShape(a connect.Agent, proofs []proof.Summary) dto.Agent {
	shape := dto.Agent{
		Kind: a.Kind, Found: a.Found, Path: a.Path, Version: a.Version,
		Connected: a.Connected, Jobs: a.Jobs, Detail: a.Detail, Refused: a.Refused, Missing: a.Missing,
	}
	for _, known := range proofs {
		if known.Kind == a.Kind {
			shape.Proof = &dto.Proof{Version: known.Version, At: known.At, Problem: known.Problem, Broken: dto.Each(known.Broken, proof.BrokenRoute.Sentence)}
		}
	}
	return shape
}

// changeRequest is the body of a request to connect or disconnect an agent. Without
// consent it requests a preview of the change. With consent it names the shown
// change by its digest.
type changeRequest struct {
	Consent bool   `json:"consent"`
	Digest  string `json:"digest"`
	// Jobs sets, when connecting, whether its sessions may start agents on this PC
	// without a question; null keeps the setting.
	Jobs *bool `json:"jobs"`
}

// connect answers POST /api/agents/<kind>/connect.
func (a *agents) connect(w http.ResponseWriter, r *http.Request) error {
	return a.change(w, r, a.plan)
}

// disconnect answers POST /api/agents/<kind>/disconnect.
func (a *agents) disconnect(w http.ResponseWriter, r *http.Request) error {
	return a.change(w, r, a.planRemoval)
}

func (a *agents) plan(ctx context.Context, kind bridge.AgentKind, request changeRequest) (setup.Plan, error) {
	return a.agents.Plan(ctx, kind, setup.Choices{Jobs: request.Jobs})
}

func (a *agents) planRemoval(_ context.Context, kind bridge.AgentKind, request changeRequest) (setup.Plan, error) {
	if request.Jobs != nil {
		return setup.Plan{}, bridge.Errorf(bridge.Invalid, "jobs says how an agent is connected: leave it out to disconnect one")
	}
	return a.agents.PlanRemoval(kind)
}

// change shows a change, or makes exactly the shown one: it rebuilds the plan and
// compares the digest that the owner saw.
func (a *agents) change(w http.ResponseWriter, r *http.Request, plan func(context.Context, bridge.AgentKind, changeRequest) (setup.Plan, error)) error {
	kind, err := bridge.ParseKind(r.PathValue("kind"))
	if err != nil {
		return bridge.Errorf(bridge.NotFound, "there is no agent CLI of the kind %q", r.PathValue("kind"))
	}
	var request changeRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if request.Consent != (request.Digest != "") {
		return bridge.Errorf(bridge.Invalid, "consent and digest belong together: ask without both for the change, then consent to its digest")
	}
	if a.agents == nil {
		return bridge.Errorf(bridge.Unavailable, "agents cannot be connected from here: run `bridge install`")
	}
	if !a.changing.TryLock() {
		return bridge.Errorf(bridge.Conflict, "another agent is being connected: wait until that is done")
	}
	defer a.changing.Unlock()
	planned, err := plan(r.Context(), kind, request)
	if err != nil {
		return err
	}
	if !request.Consent {
		return httpjson.WriteJSON(w, changeOf(planned, false))
	}
	if planned.Digest() != request.Digest {
		return bridge.Errorf(bridge.Conflict, "the files are not as they were when the change was shown: nothing was changed, look at it again")
	}
	if err := a.agents.Apply(planned); err != nil {
		return err
	}
	a.forget()
	a.log.Info("an agent's settings were changed from the page", "agent", kind, "files", len(planned.Edits))
	return httpjson.WriteJSON(w, changeOf(planned, true))
}

func changeOf(plan setup.Plan, done bool) dto.Change {
	notes := dto.List(plan.Notes)
	if plan.Doubt != "" {
		notes = append(slices.Clone(notes), plan.Doubt)
	}
	wire := dto.Change{Kind: plan.Kind, Done: done, Digest: plan.Digest(), Edits: []dto.Edit{}, Notes: notes}
	for _, edit := range plan.Edits {
		wire.Edits = append(wire.Edits, dto.Edit{Path: edit.Path, Verb: edit.Verb(), Adds: edit.Adds, Diff: edit.Diff()})
	}
	return wire
}
