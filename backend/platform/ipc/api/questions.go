package api

import (
	"context"

	"bridge/backend/core/question"
)

// AskOwnerArgs holds the arguments of ask_owner. The caller chooses the ID: a
// repeated request is the same question.
type AskOwnerArgs struct {
	Caller
	ID       string        `json:"id"`
	Question question.Args `json:"question"`
}

// QuestionArgs names a question of the caller.
type QuestionArgs struct {
	Caller
	ID string `json:"id"`
}

// AnswerQuestionArgs is the owner's answer.
type AnswerQuestionArgs struct {
	ID     string          `json:"id"`
	Answer question.Answer `json:"answer"`
}

// QuestionOperations returns the operations on sessions' questions to the owner.
func QuestionOperations() []Row {
	return []Row{OpAskOwner.Row, OpQuestion.Row, OpWithdrawQuestion.Row, OpAnswerQuestion.Row}
}

// QuestionCalls holds the operations on questions. Each fails with Unavailable if the broker
// cannot use questions.db.
type QuestionCalls struct{ link Link }

// AskOwner asks the owner a question and returns its record. It fails with Denied in a job or a
// native child, and with Invalid for a bad question. It fails with Conflict if another session
// used the id, or too many questions are open.
func (c QuestionCalls) AskOwner(ctx context.Context, args AskOwnerArgs) (question.Question, error) {
	return OpAskOwner.Call(ctx, c.link, args)
}

// Question returns the current state of the caller's question. It fails with Denied in a job or
// a native child, and with NotFound if the caller asked no question with that id.
func (c QuestionCalls) Question(ctx context.Context, args QuestionArgs) (question.Question, error) {
	return OpQuestion.Call(ctx, c.link, args)
}

// WithdrawQuestion withdraws the caller's question; an ended one stays unchanged. It fails as
// Question does, and if the question cannot be stored.
func (c QuestionCalls) WithdrawQuestion(ctx context.Context, args QuestionArgs) (question.Question, error) {
	return OpWithdrawQuestion.Call(ctx, c.link, args)
}

// AnswerQuestion stores the owner's answer. It fails with Denied inside an agent.
func (c QuestionCalls) AnswerQuestion(ctx context.Context, args AnswerQuestionArgs) (question.Question, error) {
	return OpAnswerQuestion.Call(ctx, c.link, args)
}
