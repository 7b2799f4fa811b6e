package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// Activity is the answer of GET /api/activity: the events since a time.
type Activity struct {
	Since    bridge.UnixMillis  `json:"since"`
	At       bridge.UnixMillis  `json:"at"`
	Began    *bridge.UnixMillis `json:"began"`    // start of the broker's observation of work; null without a broker
	Work     map[string][]Span  `json:"work"`     // working times by peer id, oldest first
	Messages []Mark             `json:"messages"` // newest first
	Complete bool               `json:"complete"` // false: older messages were omitted
}

// Span is a time span; To is null while it continues.
type Span struct {
	From bridge.UnixMillis  `json:"from"`
	To   *bridge.UnixMillis `json:"to"`
}

// Mark is a short form of a message.
type Mark struct {
	ID    string            `json:"id"`
	From  string            `json:"from"`
	Agent bridge.AgentKind  `json:"agent"` // of the sender
	To    string            `json:"to"`    // the target as given by the sender
	Kind  string            `json:"kind"`  // message, decision or owner
	At    bridge.UnixMillis `json:"at"`
	Words string            `json:"words"` // its beginning
	Ways  []Way             `json:"ways"`
}

// Way is the delivery of a message to one recipient.
type Way struct {
	Name  string             `json:"name"`
	Stage bridge.Stage       `json:"stage"`
	Woken *bridge.UnixMillis `json:"woken"` // when it woke the session
	Read  *bridge.UnixMillis `json:"read"`
}

// Hours is the answer of GET /api/activity/hours, oldest first.
type Hours struct {
	Hours []Hour `json:"hours"`
}

// Hour holds the counts of one hour.
type Hour struct {
	From     bridge.UnixMillis `json:"from"`
	Messages int               `json:"messages"`
	Wakes    int               `json:"wakes"`
}

// KindOf returns decision, owner or message. The notice of an owner's decision is a
// decision.
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
