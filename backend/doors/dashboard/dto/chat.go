package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// Chat is the answer to the owner's message (CHT-02).
type Chat struct {
	State     chat.State     `json:"state"`
	Transport chat.Transport `json:"transport"`
	Receipt   *string        `json:"receipt"`
	Detail    string         `json:"detail"`
}

// Receipt is the answer of GET /api/chat-delivery/<id> (CHT-09).
type Receipt struct {
	ID        string            `json:"id"`
	State     chat.State        `json:"state"`
	Transport chat.Transport    `json:"transport"`
	UpdatedAt bridge.UnixMillis `json:"updatedAt"`
}

// Sent is the answer of POST /api/messages.
type Sent struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	Recipients     []Recipient `json:"recipients"`
}

// Recipient is one session that a message was stored for.
type Recipient struct {
	Name   string `json:"name"`
	Online bool   `json:"online"`
	Wake   bool   `json:"wake"` // whether a wake was requested
}
