package api

import "bridge/backend/session"

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
