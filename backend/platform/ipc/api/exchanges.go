package api

import "bridge/backend/core/bridge"

// ExchangeAction is the owner's decision about the messages of two sessions (QUI-02).
type ExchangeAction string

// The actions.
const (
	ExchangePause  ExchangeAction = "pause"  // their messages to each other wait
	ExchangeResume ExchangeAction = "resume" // they go on, and the count starts anew
)

// ExchangeArgs names two sessions of this PC, each by its name or id.
type ExchangeArgs struct {
	A      string         `json:"a"`
	B      string         `json:"b"`
	Action ExchangeAction `json:"action"`
}

// Check fails with Invalid for a missing session or an unknown action.
func (a ExchangeArgs) Check() error {
	switch {
	case a.A == "" || a.B == "":
		return bridge.Errorf(bridge.Invalid, "name two sessions")
	case a.Action != ExchangePause && a.Action != ExchangeResume:
		return bridge.Errorf(bridge.Invalid, "action must be %s or %s, not %q", ExchangePause, ExchangeResume, bridge.OneLine(string(a.Action)))
	}
	return nil
}

// Exchange is the state of two sessions after the owner's decision. A and B are their
// names, in the order of ExchangeArgs.
type Exchange struct {
	A       string `json:"a"`
	B       string `json:"b"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"` // false if they were paused, or not, before
	// Waiting is how many of their messages to each other wait; null if the broker cannot
	// read it.
	Waiting bridge.Count `json:"waiting"`
}
