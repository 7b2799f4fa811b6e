package api

import "bridge/backend/decision"

// DecideArgs records a decision. Scope nil means the session's project.
type DecideArgs struct {
	Caller
	// ID is chosen by the caller, so that a lost answer can be retried without
	// a second revision. "" lets the broker choose.
	ID              string          `json:"id,omitempty"`
	Topic           string          `json:"topic"`
	Text            string          `json:"text"`
	Scope           *decision.Scope `json:"scope,omitempty"`
	SourceMessageID string          `json:"sourceMessageId,omitempty"`
}

// DecideResult is the answer of the tool `decide` (DEC-01).
type DecideResult struct {
	Decision    decision.Revision `json:"decision"`
	DeliveredTo []string          `json:"deliveredTo"`
}

// DecisionsArgs looks decisions up. Scope nil means the session's project.
type DecisionsArgs struct {
	Caller
	Query   string          `json:"query,omitempty"`
	Scope   *decision.Scope `json:"scope,omitempty"`
	History bool            `json:"history,omitempty"`
}
