package api

import (
	"context"

	"bridge/backend/core/decision"
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
	// Supersedes is the id of the decision in force that the caller saw: with another one
	// in force nothing is recorded. "" replaces whatever is in force.
	Supersedes string `json:"supersedes,omitempty"`
}

// WithdrawDecisionArgs withdraws the decision in force on a topic.
type WithdrawDecisionArgs struct {
	// ID is chosen by the caller, as in DecideArgs.
	ID     string `json:"id,omitempty"`
	Topic  string `json:"topic"`
	Reason string `json:"reason,omitempty"`
	// Supersedes is as in DecideArgs.
	Supersedes string `json:"supersedes,omitempty"`
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

// PinDecision records a decision of the owner. Its scope is required. It fails with Denied
// within an agent, and with NotFound or Conflict where Supersedes is not in force.
func (c DecisionCalls) PinDecision(ctx context.Context, args DecideArgs) (DecideResult, error) {
	return OpPinDecision.Call(ctx, c.link, args)
}

// WithdrawDecision withdraws the decision in force on a topic. It fails with Denied within
// an agent, with NotFound where none is in force, and with Conflict where another one than
// Supersedes is.
func (c DecisionCalls) WithdrawDecision(ctx context.Context, args WithdrawDecisionArgs) (DecideResult, error) {
	return OpWithdrawDecision.Call(ctx, c.link, args)
}

// Decisions looks decisions up.
func (c DecisionCalls) Decisions(ctx context.Context, args DecisionsArgs) ([]decision.Revision, error) {
	return OpDecisions.Call(ctx, c.link, args)
}
