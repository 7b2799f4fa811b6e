package jobs

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// Heard tells how far the words of that id came: queued, delivered when the agent's
// CLI has them, else unconfirmed (CHT-12).
func (j *asks) Heard(id string) jobfiles.Way { return j.heard.Of(id) }

// settled notes what a runner says of words. What came too late for a run waits for
// the next one; what may have come in is never said again by itself.
func (j *runners) settled(order api.Order, outcome api.OrderOutcome) {
	if order.Kind != api.OrderMessage {
		return
	}
	state := chat.Unconfirmed
	switch {
	case outcome.Error == nil:
		state = chat.Delivered
	case outcome.Error.Code == bridge.Unavailable:
		state = chat.Queued
	}
	j.heard.Note(order.ID, jobfiles.Way{State: state, At: j.opts.Now().UnixMilli()})
}
