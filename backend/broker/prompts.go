package broker

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Prompts serves the operations about permission prompts of interactive sessions in the
// broker's process.
type Prompts interface {
	mux.Part
	// Approve answers a prompt by the owner's command.
	Approve(ctx context.Context, conn *ipc.Conn, args api.ApproveArgs) (job.Approval, error)
	// Has reports whether that id is an approval of a prompt.
	Has(id string) bool
	// HandleHook is called with each hook and plugin call of a known session.
	HandleHook(call session.HookCall)
	// Disconnected is called after the last operation of a connection.
	Disconnected(conn *ipc.Conn)
}

// Prompt registers the operations about permission prompts, before the first connection.
func (b *Broker) Prompt(prompts Prompts) {
	b.prompts = prompts
	prompts.Register(b.mux)
}

var errNoPrompts = bridge.Errorf(bridge.Unsupported, "this Bridge does not answer prompts of sessions")

// approve answers a session's prompt or a job's request by the owner's command.
func (b *Broker) approve(ctx context.Context, conn *ipc.Conn, args api.ApproveArgs) (job.Approval, error) {
	switch {
	case b.prompts != nil && b.prompts.Has(args.Approval):
		return b.prompts.Approve(ctx, conn, args)
	case b.jobs != nil:
		return b.jobs.Approve(ctx, conn, args)
	}
	return job.Approval{}, errNoJobs
}

// Prompter is a session whose agent asks for permission.
type Prompter = presence.Prompter

// Prompter returns the live session that a call comes from. ok is false if there is none,
// and for a delegated job's own session.
func (c *core) Prompter(ctx context.Context, call session.HookCall) (found Prompter, ok bool, err error) {
	call.Ancestors = c.AgentOf(ctx, call)
	s, err := c.hooks.callerOf(ctx, call)
	if err != nil || s == nil {
		return Prompter{}, false, err
	}
	found, ok = c.Callers.Prompter(s, call)
	return found, ok, nil
}

// Thread is a live session that a background server of codex runs.
type Thread = presence.Thread
