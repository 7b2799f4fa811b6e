package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// Archived is the specification's MessageHistoryRow (seed 2.7).
type Archived struct {
	ID         string            `json:"id"`
	FromName   string            `json:"from_name"`
	FromAgent  bridge.AgentKind  `json:"from_agent"`
	ToTarget   string            `json:"to_target"`
	Recipients string            `json:"recipients"` // names, joined by ", "
	Body       string            `json:"body"`
	CreatedAt  bridge.UnixMillis `json:"created_at"`
	Hop        int               `json:"hop"`
	ReplyTo    *string           `json:"reply_to"`
}

// Message is a message with its deliveries.
type Message struct {
	Archived
	ConversationID string       `json:"conversation_id"`
	Kind           string       `json:"kind"`  // message, decision or owner
	State          bridge.Stage `json:"state"` // the least advanced of its deliveries
	Deliveries     []Delivery   `json:"deliveries"`
}

// Delivery is the delivery of a message to one recipient.
type Delivery struct {
	ID     string           `json:"id"` // peer id
	Name   string           `json:"name"`
	Agent  bridge.AgentKind `json:"agent"`
	Stage  bridge.Stage     `json:"stage"`
	Note   string           `json:"note"`   // the current state in plain words
	Stages []Step           `json:"stages"` // always six, in order
}

// Step is one step of the delivery strip.
type Step struct {
	Stage    bridge.Stage       `json:"stage"`
	At       *bridge.UnixMillis `json:"at"`
	Via      mail.Via           `json:"via"` // "" if unknown
	Evidence string             `json:"evidence"`
	Possible bool               `json:"possible"` // false: it did not and will not happen
}

// Messages is the answer of GET /api/messages.
type Messages struct {
	Messages []Message `json:"messages"`
}

// Archive is the answer of GET /api/archive/messages.
type Archive struct {
	Messages []Archived `json:"messages"`
}
