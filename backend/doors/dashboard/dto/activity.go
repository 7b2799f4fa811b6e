package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// Activity is the answer of GET /api/activity: what happened since a time.
type Activity struct {
	Since    bridge.UnixMillis  `json:"since"`
	At       bridge.UnixMillis  `json:"at"`
	Began    *bridge.UnixMillis `json:"began"`    // since when the broker has seen who is at work, null without one
	Work     map[string][]Span  `json:"work"`     // when sessions were at work, by peer id, the oldest first
	Messages []Mark             `json:"messages"` // newest first
	Complete bool               `json:"complete"` // false: there were more messages, and older ones are left out
}

// Span is a time; To is null while it goes on.
type Span struct {
	From bridge.UnixMillis  `json:"from"`
	To   *bridge.UnixMillis `json:"to"`
}

// Mark is a message in short.
type Mark struct {
	ID    string            `json:"id"`
	From  string            `json:"from"`
	Agent bridge.AgentKind  `json:"agent"` // of the sender
	To    string            `json:"to"`    // the target, as it was named
	Kind  string            `json:"kind"`  // message, decision or owner
	At    bridge.UnixMillis `json:"at"`
	Words string            `json:"words"` // its beginning
	Ways  []Way             `json:"ways"`
}

// Way is how far a message came to one recipient.
type Way struct {
	Name  string             `json:"name"`
	Stage bridge.Stage       `json:"stage"`
	Woken *bridge.UnixMillis `json:"woken"` // when it woke the session
	Read  *bridge.UnixMillis `json:"read"`
}

// Hours is the answer of GET /api/activity/hours: the oldest first.
type Hours struct {
	Hours []Hour `json:"hours"`
}

// Hour is what an hour brought.
type Hour struct {
	From     bridge.UnixMillis `json:"from"`
	Messages int               `json:"messages"`
	Wakes    int               `json:"wakes"`
}

// KindOf tells decisions and the owner's words from ordinary messages. The notice of a
// decision of the owner is a decision.
func KindOf(row mail.HistoryRow) string {
	switch {
	case row.IsDecision():
		return "decision"
	case row.From.Agent == bridge.Owner:
		return "owner"
	default:
		return "message"
	}
}
