package api

import (
	"context"

	"bridge/backend/core/decision"
)

// DecideArgs records a decision. Scope nil means the session's project.
type DecideArgs struct {
	Caller
	// ID is chosen by the caller, so that a retry after a lost answer makes no
	// second revision. "" lets the broker choose.
	ID              string          `json:"id,omitempty"`
	Topic           string          `json:"topic"`
	Text            string          `json:"text"`
	Scope           *decision.Scope `json:"scope,omitempty"`
	SourceMessageID string          `json:"sourceMessageId,omitempty"`
	// Supersedes is the id of the current decision that the caller saw. If another
	// one is current, the broker records nothing. "" replaces any current decision.
	Supersedes string `json:"supersedes,omitempty"`
}

// WithdrawDecisionArgs withdraws the current decision on a topic.
type WithdrawDecisionArgs struct {
	// ID is chosen by the caller, as in DecideArgs.
	ID     string `json:"id,omitempty"`
	Topic  string `json:"topic"`
	Reason string `json:"reason,omitempty"`
	// Supersedes is as in DecideArgs.
	Supersedes string `json:"supersedes,omitempty"`
}

// DecideResult is the result of the tool `decide` (DEC-01).
type DecideResult struct {
	Decision    decision.Revision `json:"decision"`
	DeliveredTo []string          `json:"deliveredTo"`
}

// DecisionsArgs searches decisions. Scope nil means the session's project.
type DecisionsArgs struct {
	Caller
	Query   string          `json:"query,omitempty"`
	Scope   *decision.Scope `json:"scope,omitempty"`
	History bool            `json:"history,omitempty"`
}

// DecisionCalls holds the operations on decisions.
type DecisionCalls struct{ link Link }

// Decide records a decision. It fails with Denied before Register, and with Invalid for a bad
// topic, text or scope. It fails with Conflict if another decision has the id or Supersedes is
// not current, and with NotFound if Supersedes is set and no decision is current.
func (c DecisionCalls) Decide(ctx context.Context, args DecideArgs) (DecideResult, error) {
	return OpDecide.Call(ctx, c.link, args)
}

// PinDecision records a decision of the owner. It requires a scope. It fails with
// Denied inside an agent, and with NotFound or Conflict if Supersedes is not current.
func (c DecisionCalls) PinDecision(ctx context.Context, args DecideArgs) (DecideResult, error) {
	return OpPinDecision.Call(ctx, c.link, args)
}

// WithdrawDecision withdraws the current decision on a topic. It fails with Denied
// inside an agent, with NotFound if there is none, and with Conflict if it is not
// Supersedes.
func (c DecisionCalls) WithdrawDecision(ctx context.Context, args WithdrawDecisionArgs) (DecideResult, error) {
	return OpWithdrawDecision.Call(ctx, c.link, args)
}

// Decisions returns the decisions that fit args. It fails with Denied before Register, and with
// Invalid for a bad query or without a scope if the session's project is unknown.
func (c DecisionCalls) Decisions(ctx context.Context, args DecisionsArgs) ([]decision.Revision, error) {
	return OpDecisions.Call(ctx, c.link, args)
}
