package broker

import (
	"context"
	"encoding/json"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Prompts serves the operations about permission prompts of interactive sessions in the
// broker's process.
type Prompts interface {
	mux.Part
	// Has reports whether an approval of that id is one of them.
	Has(id string) bool
	// Heard is told each hook and plugin call of a known session.
	Heard(call session.HookCall)
	// Disconnected is called after the last Handle of a connection.
	Disconnected(conn *ipc.Conn)
}

// Prompt has prompts serve what belongs to them, before anybody connects.
func (b *Broker) Prompt(prompts Prompts) { b.prompts = prompts }

var errNoPrompts = bridge.Errorf(bridge.Unsupported, "this Bridge does not answer prompts of sessions")

// approving is the owner's answer by command: to a prompt of a session, else to what a
// job asks.
func approving(b *Broker) mux.Operation {
	ofJob := b.delegated(api.OpApprove.Row)
	return mux.Operation{Row: ofJob.Row, Serve: func(ctx context.Context, l *link, raw json.RawMessage) (any, error) {
		var args api.ApproveArgs
		if b.prompts != nil && bridge.DecodeAdditive(raw, bridge.MaxFrameBytes, &args) == nil && b.prompts.Has(args.Approval) {
			return b.prompts.Handle(ctx, l.Conn, ofJob.Name, raw)
		}
		return ofJob.Serve(ctx, l, raw)
	}}
}

// Prompter is a session whose agent asks for permission.
type Prompter = presence.Prompter

// Prompter finds the live session that a call comes from; ok is false where there is
// none, and for a delegated job's own.
func (c *core) Prompter(ctx context.Context, call session.HookCall) (found Prompter, ok bool, err error) {
	call.Ancestors = c.AgentOf(ctx, call)
	s, err := c.hooks.callerOf(ctx, call)
	if err != nil || s == nil {
		return Prompter{}, false, err
	}
	found, ok = c.Callers.Prompter(s, call)
	return found, ok, nil
}

// Thread is a live session that a background server of codex's runs.
type Thread = presence.Thread
