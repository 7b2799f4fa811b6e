package dto

import "bridge/backend/core/bridge"

// Costs is the answer of GET /api/cost: the texts that Bridge put into the contexts of the
// sessions, in tokens of BytesPerToken bytes. KeptDays is how many days are known.
type Costs struct {
	BytesPerToken int           `json:"bytesPerToken"`
	KeptDays      int           `json:"keptDays"`
	Sessions      []SessionCost `json:"sessions"` // those with the most tokens first
}

// SessionCost is what Bridge put into one session.
type SessionCost struct {
	ID    string           `json:"id"` // peer id
	Name  string           `json:"name"`
	Agent bridge.AgentKind `json:"agent"`
	Total Tokens           `json:"total"`
	Days  []DayCost        `json:"days"` // newest first
}

// DayCost is what Bridge put into a session on one day.
type DayCost struct {
	Day    string `json:"day"` // such as 2026-01-31, in the time zone of this PC
	Tokens Tokens `json:"tokens"`
}

// Tokens is an estimate by kind.
type Tokens struct {
	Tools   int64 `json:"tools"`   // tokens
	Notes   int64 `json:"notes"`   // tokens
	Mail    int64 `json:"mail"`    // tokens
	Notices int64 `json:"notices"` // tokens
	Total   int64 `json:"total"`   // tokens of all kinds
}
