package broker

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/ipc/api"
)

// Ask registers the operations about questions of sessions to their owner, before the
// first connection.
func (b *Broker) Ask(questions mux.Part) { questions.Register(b.mux) }

var errNoQuestions = bridge.Errorf(bridge.Unavailable, "questions.db cannot be used: `bridge doctor` says why")

// IsStored reports whether a message with that id was ever stored.
func (b *Broker) IsStored(ctx context.Context, messageID string) (bool, error) {
	_, err := b.opts.DB.Sent(ctx, messageID)
	if bridge.CodeOf(err) == bridge.NotFound {
		return false, nil
	}
	return err == nil, err
}

// DecideOwner records a decision of the owner for sessions that work in that folder, once
// for its id.
func (b *Broker) DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error) {
	return b.decisions.record(ctx, bridge.OwnerAddress(), cwd, args)
}

// WithdrawOwner records that the owner withdraws the decision in force on a topic, once
// for its id. It fails with NotFound if none is in force.
func (b *Broker) WithdrawOwner(ctx context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error) {
	rev, err := decision.NewWithdrawal(args.Topic, args.Reason)
	if err != nil {
		return api.DecideResult{}, err
	}
	return b.decisions.revise(ctx, bridge.OwnerAddress(), rev, args.ID, args.Supersedes)
}
