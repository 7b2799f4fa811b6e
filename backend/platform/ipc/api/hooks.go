package api

import (
	"context"

	"bridge/backend/core/session"
)

// WakeWait is one waiting wake hook. Of several hooks of one session only the
// newest is served. Standby is served if the first one's wake failed.
type WakeWait struct {
	Call    session.HookCall `json:"call"`
	Standby bool             `json:"standby,omitempty"`
}

// WakeReply ends the wait: with text that starts a turn, or because a newer hook
// waits or the session has left.
type WakeReply struct {
	Text       string         `json:"text,omitempty"`
	Lease      *session.Lease `json:"loan,omitempty"`
	Superseded bool           `json:"superseded,omitempty"`
}

// HookCalls holds the operations of an agent's hooks.
type HookCalls struct{ link Link }

// Hook reports a hook call and returns the text for the model. It fails with Invalid for a
// malformed call, and if the store fails. A call of an unknown session gets an empty reply.
func (c HookCalls) Hook(ctx context.Context, args session.HookCall) (session.HookReply, error) {
	return OpHook.Call(ctx, c.link, args)
}

// WakeWait waits until the session must wake up. It fails with Invalid for a malformed call,
// and if the store fails. A session that has left is no error: the reply is then Superseded.
func (c HookCalls) WakeWait(ctx context.Context, args WakeWait) (WakeReply, error) {
	return OpWakeWait.Call(ctx, c.link, args)
}
