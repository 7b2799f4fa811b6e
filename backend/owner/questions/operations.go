package questions

import (
	"context"
	"encoding/json"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Handle serves the operations about questions.
func (q *Questions) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	switch op {
	case api.OpAskOwner.Name:
		return api.Serve(args, func(args api.AskOwnerArgs) (question.Question, error) {
			by, err := q.asker(ctx, conn, args.Caller)
			if err != nil {
				return question.Question{}, err
			}
			return q.ask(ctx, by, args.ID, args.Question)
		})
	case api.OpQuestion.Name:
		return api.Serve(args, func(args api.QuestionArgs) (question.Question, error) {
			by, err := q.asker(ctx, conn, args.Caller)
			if err != nil {
				return question.Question{}, err
			}
			return q.of(by, args.ID)
		})
	case api.OpWithdrawQuestion.Name:
		return api.Serve(args, func(args api.QuestionArgs) (question.Question, error) {
			by, err := q.asker(ctx, conn, args.Caller)
			if err != nil {
				return question.Question{}, err
			}
			return q.withdraw(ctx, by, args.ID)
		})
	case api.OpAnswerQuestion.Name:
		return api.Serve(args, func(args api.AnswerQuestionArgs) (question.Question, error) {
			by, err := q.opts.Broker.Asker(ctx, conn, api.Caller{})
			if err == nil {
				err = by.OnlyOwner("answers by this command")
			}
			if err != nil {
				return question.Question{}, err
			}
			return q.Answer(ctx, args.ID, args.Answer)
		})
	}
	return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
}

// asker is the session that asks. A job has a supervisor to ask, and a native child its
// parent.
func (q *Questions) asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error) {
	by, err := q.opts.Broker.Asker(ctx, conn, caller)
	if err == nil && by.InJob {
		err = bridge.Errorf(bridge.Denied, "only a session of the owner's own asks him: ask whoever you work for")
	}
	return by, err
}
