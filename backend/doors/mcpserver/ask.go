package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

const (
	// usualLook is how often a job that is waited for is looked at: its message may have
	// been shown by another way, and it may have got further.
	usualLook = 5 * time.Second
	// stillAfter is how many looks a host hears nothing while nothing changes. Hosts take
	// a call for stuck after a minute.
	stillAfter = 5
)

// jobAnswer is the answer of ask_*.
type jobAnswer struct {
	Job      string        `json:"job"`
	Status   job.State     `json:"status"`
	Result   string        `json:"result"`
	Error    string        `json:"error,omitempty"`
	Evidence runs.Evidence `json:"evidence"`
}

// askJob waits for a job's result, which is its ordinary message. A caller that stops waiting gets it as
// mail, and a caller that got it here gets no second copy (JOB-01). It fails with Busy at too many waits.
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
		result, lease, err := s.awaitJob(ctx, c, spawned)
		if err != nil {
			if lease != nil {
				s.nack(*lease)
			}
			if bridge.CodeOf(err) == bridge.Denied { // it was handed over meanwhile
				return nil, nil, err
			}
			return nil, nil, bridge.Errorf(bridge.CodeOf(err), "%s goes on and its answer comes as a message, but it could not be waited for: %w", spawned.Job, err)
		}
		return jobAnswer{result.Job, result.Status, result.Result, result.Error, result.Evidence}, lease, nil
	}
}

// awaitJob waits until a job has ended and its message was taken, here or
// elsewhere. The lease is of the message taken here, even with an error.
func (s *Server) awaitJob(ctx context.Context, c call, spawned api.Spawned) (api.JobResult, *session.Lease, error) {
	reporter := &progress{token: c.progress, began: s.opts.Now()}
	reporter.report(ctx, spawned.Job, api.JobResult{JobStatus: api.JobStatus{Job: spawned.Job, Status: spawned.Status}}, s.opts.Now())
	look := cmp.Or(s.opts.PollInterval, usualLook)
	for patience, ended := look, false; ; {
		found, err := s.waitUntil(ctx, patience, api.WaitArgs{Caller: c.caller, ConversationID: runs.Conversation(spawned.Job)})
		if err != nil {
			return api.JobResult{}, nil, err
		}
		if found.Lease != nil {
			s.acks.hold(*found.Lease) // a broker that starts meanwhile must not give it to another session
		}
		result, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.JobResult, error) {
			return client.JobResult(ctx, api.JobArgs{Caller: c.caller, Job: spawned.Job})
		})
		if err != nil || !found.TimedOut || ended {
			return result, found.Lease, err
		}
		if ended = result.Ended && result.Sent; ended {
			patience = min(look, time.Second) // its message is there now, or was taken
			continue
		}
		reporter.report(ctx, spawned.Job, result, s.opts.Now())
	}
}

// progress tracks the progress notifications of a long call (JOB-20). A host
// without a token gets none.
type progress struct {
	token mcp.ProgressToken
	began time.Time
	last  string  // the last text sent
	value float64 // increases with each notification, as the protocol requires
	still int     // checks since the last notification
}

// report sends the job's progress if it is new, and a regular sign of life otherwise.
func (p *progress) report(ctx context.Context, name string, present api.JobResult, at time.Time) {
	if p.token == nil {
		return
	}
	text := farWords(name, present)
	if p.still++; text == p.last && p.still < stillAfter {
		return
	}
	p.value = max(p.value+1, at.Sub(p.began).Round(time.Second).Seconds())
	message := text
	if text == p.last {
		message = "still working: " + text
	}
	p.last, p.still = text, 0
	notify(ctx, string(mcp.MethodNotificationProgress), map[string]any{"progressToken": p.token, "progress": p.value, "message": message})
}

// farWords returns a job's progress in one line.
func farWords(name string, present api.JobResult) string {
	text := fmt.Sprintf("%s is %s", name, present.Status)
	if present.Status == job.Waiting && present.Wait != nil {
		text += fmt.Sprintf(" (%s)", present.Wait.For)
	}
	if far := present.Progress; far.Percent != nil {
		text += fmt.Sprintf(", %d %%", *far.Percent)
	}
	if minutes := present.Progress.ETAMinutes; minutes != nil {
		text += fmt.Sprintf(", about %s left", bridge.Counted(int(*minutes), "minute"))
	}
	if note := cmp.Or(present.Progress.Note, present.Step); note != "" {
		text += ": " + note
	}
	return text
}
