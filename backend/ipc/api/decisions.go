package api

import (
	"context"

	"bridge/backend/decision"
)

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

// DecisionCalls are the operations about decisions.
type DecisionCalls struct{ link Link }

// Decide records a decision.
func (c DecisionCalls) Decide(ctx context.Context, args DecideArgs) (DecideResult, error) {
	return OpDecide.Call(ctx, c.link, args)
}

// Decisions looks decisions up.
func (c DecisionCalls) Decisions(ctx context.Context, args DecisionsArgs) ([]decision.Revision, error) {
	return OpDecisions.Call(ctx, c.link, args)
}
