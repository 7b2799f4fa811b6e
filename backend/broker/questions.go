package broker

import (
	"context"

	"bridge/backend/bridge"
	"bridge/backend/broker/serving"
	"bridge/backend/ipc/api"
)

// Questions serves the operations about what sessions ask their owner in the broker's
// process.
type Questions interface{ serving.Part }

// Ask has questions serve what belongs to them, before anybody connects.
func (b *Broker) Ask(questions Questions) { b.questions = questions }

var errNoQuestions = bridge.Errorf(bridge.Unavailable, "questions.db cannot be used: `bridge doctor` says why")

// IsStored reports whether a message of that id was ever stored.
func (b *Broker) IsStored(ctx context.Context, messageID string) (bool, error) {
	_, err := b.opts.DB.Sent(ctx, messageID)
	if bridge.CodeOf(err) == bridge.NotFound {
		return false, nil
	}
	return err == nil, err
}

// DecideOwner records a decision of the owner's for those who work in that folder, once
// for its id.
func (b *Broker) DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) error {
	_, err := b.decisions.record(ctx, bridge.OwnerAddress(), cwd, args)
	return err
}
