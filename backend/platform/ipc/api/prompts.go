package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
)

// PromptArgs is a permission prompt that a session's agent shows in its terminal.
// The caller chooses the ID.
type PromptArgs struct {
	ID       string           `json:"id"`
	Call     session.HookCall `json:"call"`
	Kind     string           `json:"kind"`
	What     string           `json:"what"`
	Detail   string           `json:"detail"`
	Why      string           `json:"why,omitempty"`
	OnlyTold string           `json:"onlyTold,omitempty"`
	Caution  string           `json:"caution,omitempty"`
	Choices  []bridge.Choice  `json:"choices,omitempty"`
	// PID is the agent's process, or 0 if unknown.
	PID int `json:"pid,omitempty"`
}

// PromptAnswer is the owner's answer. Without a decision no answer will follow: the
// terminal decides.
type PromptAnswer struct {
	Decision job.Decision `json:"decision,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Answers  [][]string   `json:"answers,omitempty"` // to the prompt's choices, in order
}

// PromptEvent is an event that the caller of Prompt saw.
type PromptEvent string

// The events.
const (
	PromptDelivered PromptEvent = "delivered" // the agent has the answer
	PromptAllowed   PromptEvent = "allowed"   // the agent reports that it was allowed
	PromptRefused   PromptEvent = "refused"   // the agent reports that it was refused
	PromptStopped   PromptEvent = "stopped"   // the agent ended the wait
	PromptGone      PromptEvent = "gone"      // the session continued with another step
)

// PromptReport reports an event of a prompt of the same connection.
type PromptReport struct {
	ID    string      `json:"id"`
	Event PromptEvent `json:"event"`
}

// AwayArgs switches away mode; without On it only queries.
type AwayArgs struct {
	On *bool `json:"on,omitempty"`
}

// Prompting is the state of the handling of permission prompts.
type Prompting struct {
	AnswerPrompts prompt.Mode `json:"answerPrompts"`
	Away          bool        `json:"away"`
}

// PromptOperations returns the operations on prompts of interactive sessions.
func PromptOperations() []Row {
	return []Row{OpPrompt.Row, OpPromptReport.Row, OpAway.Row, OpRules.Row, OpTakeBackRule.Row}
}

// RuleArgs names a standing rule of the owner.
type RuleArgs struct {
	ID string `json:"id"`
}

// RuleRevoked is a revoked rule: Asked lists the approvals that are asked again.
// Handed lists those on which the agent may already have acted.
type RuleRevoked struct {
	Rule   rule.Rule `json:"rule"`
	Asked  []string  `json:"asked"`
	Handed []string  `json:"handed"`
}

// PromptCalls holds the operations of the hooks that ask.
type PromptCalls struct{ link Link }

// Prompt asks the owner and waits for the answer while the connection lives. It fails with
// Invalid for a bad id or hook call, and with Conflict if the id was used before. It fails with
// Unsupported if the broker answers no prompts.
func (c PromptCalls) Prompt(ctx context.Context, args PromptArgs) (PromptAnswer, error) {
	return OpPrompt.Call(ctx, c.link, args)
}

// PromptReport reports an event of the prompt. It fails with Invalid for an unknown event, and
// with NotFound if this connection has no such prompt.
func (c PromptCalls) PromptReport(ctx context.Context, args PromptReport) error {
	_, err := OpPromptReport.Call(ctx, c.link, args)
	return err
}

// Rules returns the rules in force. It fails with Denied inside an agent.
func (c OwnerCalls) Rules(ctx context.Context) ([]rule.Rule, error) {
	return OpRules.Call(ctx, c.link, Empty{})
}

// RevokeRule revokes a rule immediately. It fails with Denied inside an agent.
func (c OwnerCalls) RevokeRule(ctx context.Context, args RuleArgs) (RuleRevoked, error) {
	return OpTakeBackRule.Call(ctx, c.link, args)
}

// Away returns the state, after any change. It fails with Denied inside an agent.
func (c OwnerCalls) Away(ctx context.Context, args AwayArgs) (Prompting, error) {
	return OpAway.Call(ctx, c.link, args)
}
