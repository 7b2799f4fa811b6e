package mcpserver

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/session"
)

// jobTools are the tools about delegated jobs, where the owner allows them. Within a job there is one: it gives no
// jobs on.
func (s *Server) jobTools() []tool {
	if s.opts.Job != "" {
		return []tool{{define("report_progress", "Say how far you are; whoever you work for sees it.", writes,
			number("percent", "0 to 100"),
			number("eta_minutes", "minutes until you are done, up to 1440"),
			text("note", "one line, up to 200 characters"),
		), s.reportProgress}}
	}
	if !s.opts.Jobs {
		return nil
	}
	var tools []tool
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode} {
		tools = append(tools,
			tool{define("spawn_"+string(kind), "Give a task to a new agent of "+string(kind)+" that works beside you. It answers at once with the job's name; the result comes as a message.", writes, spawnArguments()...), s.spawn(kind)},
			tool{define("ask_"+string(kind), "Give a task to a new agent of "+string(kind)+" and wait for its answer. If you stop waiting, the answer comes as a message.", writes, spawnArguments()...), s.askJob(kind)},
		)
	}
	return append(tools,
		tool{define("message_subagent", "Say something to a job of yours: a running one gets it at its next step, an ended one goes on with it. Also changes its settings, or answers what it asks.", writes,
			required(text("job", "the job's name")),
			text("message", "up to 100,000 characters"),
			text("title", "a new title"),
			text("model", "from its next turn on"),
			text("effort", "from its next turn on"),
			text("access", "read, ask or edit, from its next turn on"),
			text("approval_id", "the question that you answer, by itself"),
			text("decision", "allow or deny: only what your user wants"),
			text("reason", "why, for the job"),
		), s.messageSubagent},
		tool{define("cancel_subagent", "End a job of yours and everything that it started.", writes, required(text("job", "the job's name"))), s.cancelSubagent},
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
		anything("send_to", "names of sessions that it may write to besides you"),
		number("budget_usd", "after it the job pauses and asks"),
	}
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
	return ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.Spawned, error) { return client.Spawn(ctx, args) })
}

func (s *Server) spawn(kind bridge.AgentKind) func(context.Context, call) (any, *session.Lease, error) {
	return func(ctx context.Context, c call) (any, *session.Lease, error) {
		answer, err := s.spawnJob(ctx, c, kind, false)
		return answer, nil, err
	}
}

// jobAnswer is the answer of ask_*.
type jobAnswer struct {
	Job      string       `json:"job"`
	Status   job.State    `json:"status"`
	Result   string       `json:"result"`
	Error    string       `json:"error,omitempty"`
	Evidence job.Evidence `json:"evidence"`
}

// lookAfter is how long a job's message is waited for before the job itself is asked:
// its message may have been shown by another way.
const lookAfter = 20 * time.Second

// askJob waits for a job's result, which is its ordinary message: who stops waiting
// has it as mail, and who got it here is not told again (JOB-01).
func (s *Server) askJob(kind bridge.AgentKind) func(context.Context, call) (any, *session.Lease, error) {
	return func(ctx context.Context, c call) (any, *session.Lease, error) {
		defer s.waits.Add(-1)
		if s.waits.Add(1) > waitsAtOnce {
			return nil, nil, bridge.Errorf(bridge.Busy, "%d waits go on already: use spawn_%s", waitsAtOnce, kind)
		}
		spawned, err := s.spawnJob(ctx, c, kind, true)
		if err != nil {
			return nil, nil, err
		}
		for patience := lookAfter; ; {
			found, err := s.waitUntil(ctx, patience, api.WaitArgs{Caller: c.caller, ConversationID: job.Conversation(spawned.Job)})
			if err != nil {
				return nil, nil, err
			}
			result, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobResult, error) {
				return client.JobResult(ctx, api.JobArgs{Caller: c.caller, Job: spawned.Job})
			})
			if err != nil {
				return nil, nil, err
			}
			shownElsewhere := result.Ended && result.Sent && patience < lookAfter
			if !found.TimedOut || shownElsewhere {
				return jobAnswer{result.Job, result.Status, result.Result, result.Error, result.Evidence}, found.Lease, nil
			}
			if patience = lookAfter; result.Ended && result.Sent {
				patience = time.Second // its message is there now, or was taken
			}
		}
	}
}

// messageSubagent is not asked twice: what it says would be said twice.
func (s *Server) messageSubagent(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[job.MessageArgs](c)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
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
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobStatus, error) {
		return client.JobCancel(ctx, api.JobArgs{Caller: c.caller, Job: args.Job})
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
