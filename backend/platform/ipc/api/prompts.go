package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
)

// PromptArgs is a permission prompt that a session's agent shows in its terminal. The
// ID is chosen by whoever asks.
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
	// PID is the agent's process, 0 where that is not known.
	PID int `json:"pid,omitempty"`
}

// PromptAnswer is the owner's answer. Without a decision there is none, and none will
// come: the terminal decides.
type PromptAnswer struct {
	Decision job.Decision `json:"decision,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Answers  [][]string   `json:"answers,omitempty"` // to the prompt's choices, in their order
}

// PromptEvent is what whoever asked saw of its prompt.
type PromptEvent string

// The events.
const (
	PromptDelivered PromptEvent = "delivered" // the agent has the answer
	PromptAllowed   PromptEvent = "allowed"   // the agent says that it was allowed
	PromptRefused   PromptEvent = "refused"   // and that it was refused
	PromptStopped   PromptEvent = "stopped"   // the agent ended the wait
	PromptGone      PromptEvent = "gone"      // the session went on to something else
)

// PromptReport is about a prompt of the same connection.
type PromptReport struct {
	ID    string      `json:"id"`
	Event PromptEvent `json:"event"`
}

// AwayArgs switches away mode; without On nothing is changed.
type AwayArgs struct {
	On *bool `json:"on,omitempty"`
}

// Prompting is how it stands with prompts of interactive sessions.
type Prompting struct {
	AnswerPrompts prompt.Mode `json:"answerPrompts"`
	Away          bool        `json:"away"`
}

// PromptOperations are those about prompts of interactive sessions.
func PromptOperations() []Row {
	return []Row{OpPrompt.Row, OpPromptReport.Row, OpAway.Row, OpRules.Row, OpTakeBackRule.Row}
}

// RuleArgs name a standing rule of the owner's.
type RuleArgs struct {
	ID string `json:"id"`
}

// RuleTakenBack is a rule that holds no more: the approvals that are asked again, and
// those whose agent may have acted on it already.
type RuleTakenBack struct {
	Rule   rule.Rule `json:"rule"`
	Asked  []string  `json:"asked"`
	Handed []string  `json:"handed"`
}

// PromptCalls are the operations of whoever asks.
type PromptCalls struct{ link Link }

// Prompt asks the owner and waits for the answer, for as long as the connection lives.
func (c PromptCalls) Prompt(ctx context.Context, args PromptArgs) (PromptAnswer, error) {
	return OpPrompt.Call(ctx, c.link, args)
}

// PromptReport says what became of the prompt.
func (c PromptCalls) PromptReport(ctx context.Context, args PromptReport) error {
	_, err := OpPromptReport.Call(ctx, c.link, args)
	return err
}

// Rules are those that hold. Denied within an agent.
func (c OwnerCalls) Rules(ctx context.Context) ([]rule.Rule, error) {
	return OpRules.Call(ctx, c.link, Empty{})
}

// TakeBackRule ends a rule, at once. Denied within an agent.
func (c OwnerCalls) TakeBackRule(ctx context.Context, args RuleArgs) (RuleTakenBack, error) {
	return OpTakeBackRule.Call(ctx, c.link, args)
}

// Away tells how it stands, after the change if there is one. Denied within an agent.
func (c OwnerCalls) Away(ctx context.Context, args AwayArgs) (Prompting, error) {
	return OpAway.Call(ctx, c.link, args)
}
