package questions

import (
	"context"

	"bridge/backend/broker"
	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Register registers the operations about questions.
func (q *Questions) Register(m *mux.Mux) {
	mux.Handle(m, api.OpAskOwner, func(ctx context.Context, conn *ipc.Conn, args api.AskOwnerArgs) (question.Question, error) {
		asker, err := q.asker(ctx, conn, args.Caller)
		if err != nil {
			return question.Question{}, err
		}
		return q.ask(ctx, asker, args.ID, args.Question)
	})
	mux.Handle(m, api.OpQuestion, func(ctx context.Context, conn *ipc.Conn, args api.QuestionArgs) (question.Question, error) {
		asker, err := q.asker(ctx, conn, args.Caller)
		if err != nil {
			return question.Question{}, err
		}
		return q.get(asker, args.ID)
	})
	mux.Handle(m, api.OpWithdrawQuestion, func(ctx context.Context, conn *ipc.Conn, args api.QuestionArgs) (question.Question, error) {
		asker, err := q.asker(ctx, conn, args.Caller)
		if err != nil {
			return question.Question{}, err
		}
		return q.withdraw(ctx, asker, args.ID)
	})
	mux.Handle(m, api.OpAnswerQuestion, mux.ForOwner(q.opts.Broker, "answers by this command", func(ctx context.Context, args api.AnswerQuestionArgs) (question.Question, error) {
		return q.Answer(ctx, args.ID, args.Answer)
	}))
}

// asker returns the session that makes the request. It refuses a job, which asks its
// supervisor, and a native child, which asks its parent.
func (q *Questions) asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error) {
	asker, err := q.opts.Broker.Asker(ctx, conn, caller)
	if err == nil && asker.InJob {
		err = bridge.Errorf(bridge.Denied, "only a session of the owner's own asks him: ask whoever you work for")
	}
	return asker, err
}
