package mcpserver

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// jobTools returns the tools on delegated jobs: those of a job itself, and those of
// a session that may delegate.
func (s *Server) jobTools() (tools []tool) {
	if s.opts.Job != "" {
		tools = append(tools, tool{define("report_progress", "Say how far you are.", writes,
			number("percent", "0 to 100"),
			number("eta_minutes", "up to 1440"),
			text("note", "up to 200 characters"),
		), s.reportProgress})
	}
	if !s.opts.Jobs {
		return tools
	}
	first := ""
	kinds := s.opts.jobKinds(s.joined.kinds())
	for _, kind := range kinds {
		arguments := spawnArguments()
		switch {
		case kind == job.ACP:
			arguments = append([]argument{required(text("agent", strings.Join(s.opts.ACP, ", ")))}, arguments...)
		case s.opts.Remote:
			arguments = append(arguments, text("host", "paired PC; cwd is then there"))
		}
		spawns := "Start a job of " + string(kind) + ". Its result comes as a message."
		if first == "" {
			first = "spawn_" + string(kind)
		} else { // the first tool's descriptions serve for all
			arguments, spawns = withoutWords(arguments), "As "+first+", by "+string(kind)+"."
		}
		tools = append(tools,
			tool{define("spawn_"+string(kind), spawns, writes, arguments...), s.spawn(kind)},
			tool{define("ask_"+string(kind), "As spawn_"+string(kind)+", but waits for the result.", writes, withoutWords(arguments)...), s.askJob(kind)},
		)
	}
	return append(tools,
		tool{define("message_subagent", "Write to a job of yours, continue it, answer it or change its settings.", writes,
			required(text("job", "name, or <PC>/<name>")),
			text("message", "up to 100,000 characters"),
			text("title", ""),
			text("model", ""),
			text("effort", ""),
			text("access", "read, ask or edit"),
			text("approval_id", "the question that you answer"),
			text("decision", "allow, deny or pass_up; allow only what your user wants"),
			text("reason", "the job reads it"),
		), s.messageSubagent},
		tool{define("cancel_subagent", "End a job and all that it started.", writes, required(text("job", ""))), s.cancelSubagent},
		tool{define("list_models", "List the models of the agents on this PC.", reads, text("agent", "default: all")), s.listModels},
		tool{define("usage_limits", "See how much of your user's limits is used.", reads, text("agent", "default: all")), s.usageLimits},
		tool{define("handoff_subagents", "Give jobs of yours to another session of this PC.", writes,
			required(text("to", "session name")),
			required(anything("jobs", `names, or "all"`)),
			text("note", "up to 4,000 characters"),
		), s.handOff},
		tool{define("max_subagents", "See or set how many of your jobs run at once.", writes, number("limit", "1 to 50")), s.maxSubagents},
	)
}

// jobKinds returns the agents to which the session may delegate. installed are the
// agents of this PC, or nil if unknown. Another PC may have any agent, and a job's
// CLI got the full list before its start.
func (o Options) jobKinds(installed []bridge.AgentKind) (kinds []bridge.AgentKind) {
	for _, kind := range job.Kinds() {
		switch {
		case kind == job.ACP && len(o.ACP) == 0:
		case kind == job.ACP, installed == nil, o.Remote, o.Job != "", slices.Contains(installed, kind):
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func spawnArguments() []argument {
	return []argument{
		required(text("prompt", "the whole task, up to 100,000 characters")),
		text("title", "a few words"),
		text("model", ""),
		text("effort", ""),
		text("session_id", "session to continue"),
		text("cwd", "absolute folder; default: yours"),
		number("timeout_sec", "10 to 86400; then it pauses and asks"),
		text("access", "read (default), ask (before each change) or edit"),
		flag("worktree", "own checkout and branch; implies edit, unless you say ask"),
		anything("send_to", "names of more sessions it may write to"),
		number("budget_usd", "then it pauses and asks"),
	}
}

// withoutWords returns the arguments without their descriptions, with names and types.
func withoutWords(arguments []argument) []argument {
	short := slices.Clone(arguments)
	for i := range short {
		if short[i].name != "agent" {
			short[i].description = ""
		}
	}
	return short
}

// peersWords returns the description of the tool peers.
func peersWords(withJobs bool) string {
	if withJobs {
		return "List the other sessions, and your jobs."
	}
	return "List the other sessions."
}

// toolJob is a job of the caller in the answer of peers (JOB-02).
type toolJob struct {
	Job       string            `json:"job"`
	Agent     bridge.AgentKind  `json:"agent"`
	Title     string            `json:"title"`
	Status    job.State         `json:"status"`
	Wait      *job.Wait         `json:"wait,omitempty"`
	Progress  api.JobProgress   `json:"progress"`
	Step      string            `json:"step"`
	Model     string            `json:"model"`
	Effort    string            `json:"effort"`
	Access    job.Access        `json:"access"`
	Workdir   string            `json:"workdir"`
	Branch    string            `json:"branch,omitempty"`
	Session   string            `json:"session"`
	Tokens    int64             `json:"tokens"`
	CostUSD   float64           `json:"costUsd"`
	StartedAt bridge.UnixMillis `json:"startedAt"`
	EndedAt   bridge.UnixMillis `json:"endedAt"`
	Remote    *job.Remote       `json:"remote,omitempty"`
	Doubt     string            `json:"doubt,omitempty"` // why the state of a job on another PC may be outdated
}

// endedShown bounds the ended jobs in the answer of peers, which a model reads.
const endedShown = 20

// ownJobs returns the caller's jobs, newest first: all running ones, and the last
// ended ones.
func (s *Server) ownJobs(ctx context.Context, c call) ([]toolJob, error) {
	list := []toolJob{}
	if !s.opts.Jobs {
		return list, nil
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobsResult, error) {
		return client.Jobs(ctx, c.caller)
	})
	if bridge.CodeOf(err) == bridge.Unsupported { // a broker from before jobs were enabled
		return list, nil
	}
	ended := 0
	for _, view := range found.Jobs {
		if view.Status.IsEnded() {
			if ended++; ended > endedShown {
				continue
			}
		}
		list = append(list, toolJob{
			view.Job, view.Agent, view.Title, view.Status, view.Wait, view.Progress, view.Step, view.Model, view.Effort, view.Access,
			view.Workdir, view.Branch, view.Session, view.Tokens, view.CostUSD, view.StartedAt, view.EndedAt, view.Remote, view.Doubt,
		})
	}
	return list, err
}

func newJobName(kind bridge.AgentKind, ask bool) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return job.Name(kind, ask, random)
}

// spawnJob records a job. The session chooses the name, so that a repeated request
// to the next broker creates no second job.
func (s *Server) spawnJob(ctx context.Context, c call, kind bridge.AgentKind, waits bool) (api.Spawned, error) {
	args := api.SpawnArgs{Caller: c.caller, Kind: kind, Name: newJobName(kind, waits), Args: c.args}
	return askFor(ctx, s, remotePatience, func(ctx context.Context, client *ipc.Client) (api.Spawned, error) { return client.Spawn(ctx, args) })
}

func (s *Server) spawn(kind bridge.AgentKind) func(context.Context, call) (any, *session.Lease, error) {
	return func(ctx context.Context, c call) (any, *session.Lease, error) {
		answer, err := s.spawnJob(ctx, c, kind, false)
		return answer, nil, err
	}
}

// messageSubagent does not retry: a retry could send the message twice.
func (s *Server) messageSubagent(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[job.MessageArgs](c)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, remotePatience)
	defer cancel()
	client, err := s.reconnector.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.JobMessage(ctx, api.JobMessageArgs{Caller: c.caller, ID: uuid.NewString(), Args: args})
	return answer, nil, err
}

func (s *Server) cancelSubagent(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Job string `json:"job"`
	}](c)
	if err == nil {
		err = job.CheckTarget(args.Job)
	}
	if err != nil {
		return nil, nil, err
	}
	answer, err := askFor(ctx, s, remotePatience, func(ctx context.Context, client *ipc.Client) (api.JobStatus, error) {
		return client.JobCancel(ctx, api.JobArgs{Caller: c.caller, Job: args.Job})
	})
	return answer, nil, err
}

// handOff is safe to retry: a job is handed over only once, and the first answer
// counts.
func (s *Server) handOff(ctx context.Context, c call) (any, *session.Lease, error) {
	handoff, err := job.ParseHandoff(c.args)
	if err != nil {
		return nil, nil, err
	}
	args := api.HandoffArgs{Caller: c.caller, ID: uuid.NewString(), Handoff: handoff}
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.HandedOff, error) {
		return client.HandOff(ctx, args)
	})
	return answer, nil, err
}

func (s *Server) maxSubagents(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Limit *int `json:"limit"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	request := api.JobSlotsArgs{Caller: c.caller}
	if args.Limit != nil {
		if request.Limit = *args.Limit; request.Limit < 1 {
			return nil, nil, bridge.Errorf(bridge.Invalid, "limit must be 1 to 50")
		}
	}
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobSlots, error) {
		return client.JobSlots(ctx, request)
	})
	return answer, nil, err
}

func (s *Server) reportProgress(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := job.ParseProgress(c.args)
	if err != nil {
		return nil, nil, err
	}
	_, err = ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.Empty, error) {
		return api.Empty{}, client.JobProgress(ctx, api.JobProgressArgs{Caller: c.caller, Job: s.opts.Job, Token: s.opts.JobToken, Args: args})
	})
	return struct {
		OK bool `json:"ok"`
	}{err == nil}, nil, err
}

// askAgents queries data of the agents' CLIs. Each first query is as slow as its
// CLI.
func askAgents[R any](ctx context.Context, s *Server, c call, what func(*ipc.Client, context.Context, api.AgentArgs) (R, error)) (any, *session.Lease, error) {
	args, err := decode[struct {
		Agent bridge.AgentKind `json:"agent"`
	}](c)
	if err == nil && args.Agent != "" {
		_, err = bridge.ParseKind(string(args.Agent))
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	client, err := s.reconnector.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	answer, err := what(client, ctx, api.AgentArgs{Caller: c.caller, Agent: args.Agent})
	return answer, nil, err
}

// agentPatience is a little longer than the broker's timeout for a CLI.
const agentPatience = time.Minute

func (s *Server) listModels(ctx context.Context, c call) (any, *session.Lease, error) {
	return askAgents(ctx, s, c, func(client *ipc.Client, ctx context.Context, args api.AgentArgs) (api.ModelsResult, error) {
		return client.Models(ctx, args)
	})
}

func (s *Server) usageLimits(ctx context.Context, c call) (any, *session.Lease, error) {
	return askAgents(ctx, s, c, func(client *ipc.Client, ctx context.Context, args api.AgentArgs) (api.UsageResult, error) {
		return client.Usage(ctx, args)
	})
}
