package api

import (
	"context"

	"bridge/backend/core/question"
)

// AskOwnerArgs is ask_owner. The ID is chosen by the caller: asked for a second time it
// is the same question.
type AskOwnerArgs struct {
	Caller
	ID       string        `json:"id"`
	Question question.Args `json:"question"`
}

// QuestionArgs names a question of the caller's.
type QuestionArgs struct {
	Caller
	ID string `json:"id"`
}

// AnswerQuestionArgs is the owner's answer.
type AnswerQuestionArgs struct {
	ID     string          `json:"id"`
	Answer question.Answer `json:"answer"`
}

// QuestionOperations are those about what sessions ask their owner.
func QuestionOperations() []Row {
	return []Row{OpAskOwner.Row, OpQuestion.Row, OpWithdrawQuestion.Row, OpAnswerQuestion.Row}
}

// QuestionCalls are the operations about questions.
type QuestionCalls struct{ link Link }

// AskOwner asks the owner.
func (c QuestionCalls) AskOwner(ctx context.Context, args AskOwnerArgs) (question.Question, error) {
	return OpAskOwner.Call(ctx, c.link, args)
}

// Question is an own question as it is now.
func (c QuestionCalls) Question(ctx context.Context, args QuestionArgs) (question.Question, error) {
	return OpQuestion.Call(ctx, c.link, args)
}

// WithdrawQuestion takes an own question back; one that is over stays as it is.
func (c QuestionCalls) WithdrawQuestion(ctx context.Context, args QuestionArgs) (question.Question, error) {
	return OpWithdrawQuestion.Call(ctx, c.link, args)
}

// AnswerQuestion gives the owner's answer. Denied within an agent.
func (c QuestionCalls) AnswerQuestion(ctx context.Context, args AnswerQuestionArgs) (question.Question, error) {
	return OpAnswerQuestion.Call(ctx, c.link, args)
}
