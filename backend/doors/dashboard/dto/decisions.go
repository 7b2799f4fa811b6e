package dto

import "bridge/backend/core/decision"

// Decisions is the answer of GET /api/decisions.
type Decisions struct {
	Decisions []decision.Revision `json:"decisions"`
	// Unreadable are stored decisions that nobody is told of; left out where there
	// are none.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
}

// Decided is the answer of POST /api/decisions and of POST /api/decisions/<topic>/withdraw:
// the revision, and the names of the sessions that are told of it.
type Decided struct {
	Decision    decision.Revision `json:"decision"`
	DeliveredTo []string          `json:"deliveredTo"`
}

// Unreadable is a decision that cannot be read; Why continues a sentence
// about it. Newer says that a newer release may have written it.
type Unreadable struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Why   string `json:"why"`
	Newer bool   `json:"newer"`
}

// History is the answer of GET /api/decisions/<topic>/history.
type History struct {
	Topic string `json:"topic"`
	Decisions
	// AtOnce are revisions that PCs of a team made at the same time: to each, by its id,
	// the one that comes next in the team's order; left out where there are none.
	AtOnce map[string]string `json:"atOnce,omitempty"`
}
