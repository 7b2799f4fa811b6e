package jobs

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// NoteDelivery returns the delivery state of a message: queued, delivered once the agent's CLI
// has it, or else unconfirmed (CHT-12).
func (j *supervision) NoteDelivery(id string) jobfiles.Way { return j.deliveries.Of(id) }

// settled records the outcome of a message. If a message came too late for a run, it waits
// for the next run. A message that may have arrived is never resent automatically.
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
	j.deliveries.Note(order.ID, jobfiles.Way{State: state, At: j.opts.Now().UnixMilli()})
}
