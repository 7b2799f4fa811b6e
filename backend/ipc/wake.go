package ipc

import (
	"context"

	"bridge/backend/session"
)

// OpWakeWait waits in the background for mail that may wake an idle session.
const OpWakeWait = "wake_wait"

// WakeWait is one waiting wake hook. Of several of one session only the newest
// is served; Standby is served when the first one's wake came to nothing.
type WakeWait struct {
	Call    session.HookCall `json:"call"`
	Standby bool             `json:"standby,omitempty"`
}

// WakeReply ends the wait: with text that starts a turn, or because a newer hook
// waits or the session has left.
type WakeReply struct {
	Text       string        `json:"text,omitempty"`
	Loan       *session.Loan `json:"loan,omitempty"`
	Superseded bool          `json:"superseded,omitempty"`
}

// WakeWait waits until the session shall be woken.
func (c *Client) WakeWait(ctx context.Context, args WakeWait) (WakeReply, error) {
	return call[WakeReply](ctx, c, OpWakeWait, args)
}

// OpTake takes the mail that is to be pushed into a session's channel.
const OpTake = "take"

// MaxChannelBodyBytes bounds what a channel is given: hosts refuse content over
// 64 KiB, and an introduction comes before the body. Longer mail waits for the
// tool inbox.
const MaxChannelBodyBytes = 60 << 10

// Take takes mail for the channel of the connection's session, oldest first:
// nothing unless some of it may wake the session. It is no sign of activity.
func (c *Client) Take(ctx context.Context, args Caller) (Inbox, error) {
	return call[Inbox](ctx, c, OpTake, args)
}
