package dto

import "bridge/backend/core/decision"

// Decisions is the answer of GET /api/decisions.
type Decisions struct {
	Decisions []decision.Revision `json:"decisions"`
	// Unreadable lists stored decisions that are not published; omitted if there
	// are none.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
}

// Decided is the answer of POST /api/decisions and of POST /api/decisions/<topic>/withdraw:
// the revision, and the names of the notified sessions.
type Decided struct {
	Decision    decision.Revision `json:"decision"`
	DeliveredTo []string          `json:"deliveredTo"`
}

// Unreadable is a decision that cannot be read; Why continues a sentence about it.
// Newer means that a newer release may have written it.
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
	// AtOnce lists revisions that PCs of a team made at the same time: for each id,
	// the next one in the team's order. It is omitted if there are none.
	AtOnce map[string]string `json:"atOnce,omitempty"`
}
