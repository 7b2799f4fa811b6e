package mcpserver

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/session"
)

// jobTools are the tools about delegated jobs: of a job itself, and of whoever may hand
// work on.
func (s *Server) jobTools() (tools []tool) {
	if s.opts.Job != "" {
		tools = append(tools, tool{define("report_progress", "Say how far you are; whoever you work for sees it.", writes,
			number("percent", "0 to 100"),
			number("eta_minutes", "minutes until you are done, up to 1440"),
			text("note", "one line, up to 200 characters"),
		), s.reportProgress})
	}
	if !s.opts.Jobs {
		return tools
	}
	kinds := bridge.Kinds()
	if len(s.opts.ACP) > 0 {
		kinds = append(kinds, job.ACP)
	}
	for _, kind := range kinds {
		of, arguments := string(kind), spawnArguments()
		if kind == job.ACP {
			of = "your user's own choice"
			arguments = append([]argument{required(text("agent", "one of "+strings.Join(s.opts.ACP, ", ")))}, arguments...)
		} else {
			arguments = append(arguments, text("host", "a paired PC, by its name, that does it, empty for this one; with a name cwd is an absolute folder there, which its owner has to allow"))
		}
		tools = append(tools,
			tool{define("spawn_"+string(kind), "Give a task to a new agent of "+of+" that works beside you. It answers at once with the job's name; the result comes as a message.", writes, arguments...), s.spawn(kind)},
			tool{define("ask_"+string(kind), "Give a task to a new agent of "+of+" and wait for its answer. If you stop waiting, the answer comes as a message.", writes, arguments...), s.askJob(kind)},
		)
	}
	return append(tools,
		tool{define("message_subagent", "Say something to a job of yours: a running one gets it at its next step, an ended one goes on with it. Also changes its settings, answers what it asks, or passes that up.", writes,
			required(text("job", "the job's name, or <PC>/<name> for one on a paired PC")),
			text("message", "up to 100,000 characters"),
			text("title", "a new title"),
			text("model", "from its next turn on"),
			text("effort", "from its next turn on"),
			text("access", "read, ask or edit, from its next turn on"),
			text("approval_id", "the question that you answer, by itself"),
			text("decision", "allow or deny: only what your user wants; pass_up asks whoever is above you"),
			text("reason", "why, for the job"),
		), s.messageSubagent},
		tool{define("cancel_subagent", "End a job of yours and everything that it started.", writes, required(text("job", "the job's name"))), s.cancelSubagent},
		tool{define("list_models", "List the models that the agents of this PC offer, as their own programs tell it.", reads, text("agent", "claude, codex, opencode or antigravity; default: all that are here")), s.listModels},
		tool{define("usage_limits", "See how much of the limits of your user's accounts is used, as the agents' own programs tell it.", reads, text("agent", "claude, codex, opencode or antigravity; default: all that are here")), s.usageLimits},
		tool{define("handoff_subagents", "Give jobs of yours to another session on this PC: it gets their results and questions from then on, and you steer them no more.", writes,
			required(text("to", "the session's name; it has to be connected")),
			required(anything("jobs", `names of jobs, or "all"`)),
			text("note", "what it has to know, up to 4,000 characters"),
		), s.handOff},
		tool{define("max_subagents", "See or set how many of your jobs run at once; others wait in line.", writes, number("limit", "1 to 50")), s.maxSubagents},
	)
}

func spawnArguments() []argument {
	return []argument{
		required(text("prompt", "the task, with all that the agent has to know, up to 100,000 characters")),
		text("title", "a few words for lists"),
		text("model", "as that agent names it"),
		text("effort", "as that agent names it"),
		text("session_id", "a session of that agent to go on with"),
		text("cwd", "absolute folder to work in; default: yours"),
		number("timeout_sec", "10 to 86400; after it the job pauses and asks"),
		text("access", "read (default) changes nothing, ask asks before each change, edit edits within its folder"),
		flag("worktree", "works in a checkout of its own, on a branch that your user lands or drops; then access is edit, unless you say ask"),
		anything("send_to", "names of sessions that it may write to besides you"),
		number("budget_usd", "after it the job pauses and asks"),
	}
}

// peersWords describe the tool that lists who is there.
func peersWords(withJobs bool) string {
	const words = "List the other agent sessions on this PC: name, agent, folder, busy or idle"
	if withJobs {
		return words + "; and your own jobs: state, progress, model, cost."
	}
	return words + "."
}

// toolJob is a job of the caller's in the answer of peers (JOB-02).
type toolJob struct {
	Job       string           `json:"job"`
	Agent     bridge.AgentKind `json:"agent"`
	Title     string           `json:"title"`
	Status    job.State        `json:"status"`
	Wait      *job.Wait        `json:"wait,omitempty"`
	Progress  api.JobProgress  `json:"progress"`
	Step      string           `json:"step"`
	Model     string           `json:"model"`
	Effort    string           `json:"effort"`
	Access    job.Access       `json:"access"`
	Workdir   string           `json:"workdir"`
	Branch    string           `json:"branch,omitempty"`
	Session   string           `json:"session"`
	Tokens    int64            `json:"tokens"`
	CostUSD   float64          `json:"costUsd"`
	StartedAt int64            `json:"startedAt"`
	EndedAt   int64            `json:"endedAt"`
	Remote    *job.Remote      `json:"remote,omitempty"`
	Doubt     string           `json:"doubt,omitempty"` // why this may not be the present state of one on another PC
}

// endedShown bounds the ended jobs in the answer of peers: a model reads it.
const endedShown = 20

// ownJobs lists the caller's jobs, the newest first: all that go on, and the last of
// those that have ended.
func (s *Server) ownJobs(ctx context.Context, c call) ([]toolJob, error) {
	list := []toolJob{}
	if !s.opts.Jobs {
		return list, nil
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobsResult, error) {
		return client.Jobs(ctx, c.caller)
	})
	if bridge.CodeOf(err) == bridge.Unsupported { // a broker that was started before they were enabled
		return list, nil
	}
	ended := 0
	for _, one := range found.Jobs {
		if one.Status.IsEnded() {
			if ended++; ended > endedShown {
				continue
			}
		}
		list = append(list, toolJob{
			one.Job, one.Agent, one.Title, one.Status, one.Wait, one.Progress, one.Step, one.Model, one.Effort, one.Access,
			one.Workdir, one.Branch, one.Session, one.Tokens, one.CostUSD, one.StartedAt, one.EndedAt, one.Remote, one.Doubt,
		})
	}
	return list, err
}

func newJobName(kind bridge.AgentKind, ask bool) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return job.Name(kind, ask, random)
}

// spawnJob has a job recorded. Its name is chosen here, so that a broker that dies
// before it answers is asked again without a second job.
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

// messageSubagent is not asked twice: what it says would be said twice.
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

// handOff is asked again without harm: what was handed over is nobody's to hand over
// twice, and the answer of the first time counts.
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

// askAgents asks what the CLIs tell of themselves. The first time of each is as slow
// as its CLI.
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

// agentPatience is a little more than what the broker gives a CLI to tell.
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
