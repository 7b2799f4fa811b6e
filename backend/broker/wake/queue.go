package wake

import (
	"time"

	"bridge/backend/core/chat"
)

const (
	// outstandingFor is how long an accepted wake is believed in without any
	// activity: then the next mail may ask again, maxQueued in all. Each stays in
	// the queue until the session reads it, as a turn of its own.
	outstandingFor = 2 * time.Minute
	maxQueued      = 2
)

// QueueState is how the wake of a session through its CLI's own queue stands.
type QueueState int

// The states.
const (
	QueueIdle        QueueState = iota // the next mail may ask for a wake
	QueueScheduled                     // one is being prepared: mail that comes joins it
	QueueOutstanding                   // one was taken, and no sign of the session since
	QueueFull                          // as many may be in the queue as are borne
)

// Queue is how the wakes of one session through its CLI's own queue stand (CHT-04).
type Queue struct {
	scheduled bool
	queued    int    // how many may be in the queue without any activity since
	pushedAt  int64  // when the last of them was, Unix epoch milliseconds
	problem   string // what the queue made of the last push, "" when it took it
}

// State is the state at now, Unix epoch milliseconds.
func (q *Queue) State(now int64) QueueState {
	switch {
	case q.scheduled:
		return QueueScheduled
	case q.queued >= maxQueued:
		return QueueFull
	case q.queued > 0 && now-q.pushedAt < outstandingFor.Milliseconds():
		return QueueOutstanding
	default:
		return QueueIdle
	}
}

// Schedule begins the preparation of a wake, and reports whether one may be asked
// for now.
func (q *Queue) Schedule(now int64) bool {
	if q.State(now) != QueueIdle {
		return false
	}
	q.scheduled = true
	return true
}

// Pushed ends the preparation. result is "" where there was nothing to wake for.
func (q *Queue) Pushed(result chat.QueueResult, now int64) {
	q.scheduled, q.pushedAt = false, now
	switch result {
	case chat.QueueAccepted:
		q.queued++
	case chat.QueueUnclear: // it may be in: no other until the session shows a sign
		q.queued = maxQueued
	default: // refused: the next mail may ask again
	}
}

// Active notes a sign of the session: an outstanding wake has done its work.
func (q *Queue) Active() { q.queued = 0 }

// Note keeps what the queue made of what it was given last, for the diagnostics
// (CHT-19).
func (q *Queue) Note(result chat.QueueResult, reason string) {
	switch result {
	case chat.QueueAccepted:
		q.problem = ""
	case chat.QueueUnclear:
		q.problem = "It is not known whether codex's queue took what it was given last: " + reason + "."
	default:
		q.problem = "codex's queue did not take what it was given last: " + reason + "."
	}
}

// Problem is what went wrong with the last push, "" when the queue took it.
func (q *Queue) Problem() string { return q.problem }
