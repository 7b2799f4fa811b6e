package wake

import (
	"time"

	"bridge/backend/core/chat"
)

const (
	// outstandingFor is how long an accepted wake counts without any activity. Then the
	// next mail may request another, maxQueued in all. Each stays in the queue until the
	// session reads it as a separate turn.
	outstandingFor = 2 * time.Minute
	maxQueued      = 2
)

// QueueState is the state of a session's wake through its CLI's own queue.
type QueueState int

// The states of a queue.
const (
	QueueIdle        QueueState = iota // the next mail may request a wake
	QueueScheduled                     // a wake is being prepared: new mail shares it
	QueueOutstanding                   // a wake was accepted, without a sign of the session since
	QueueFull                          // the queue may hold as many as allowed
)

// Queue is the state of one session's wakes through its CLI's own queue (CHT-04).
type Queue struct {
	scheduled bool
	queued    int    // how many may be queued without any activity since
	pushedAt  int64  // when the last one was pushed, Unix epoch milliseconds
	problem   string // why the queue did not accept the last push, "" if it did
}

// State returns the state at now, in Unix epoch milliseconds.
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

// Schedule begins the preparation of a wake. It returns false if none may be requested
// now.
func (q *Queue) Schedule(now int64) bool {
	if q.State(now) != QueueIdle {
		return false
	}
	q.scheduled = true
	return true
}

// Pushed ends the preparation. result is "" if there was nothing to wake for.
func (q *Queue) Pushed(result chat.QueueResult, now int64) {
	q.scheduled, q.pushedAt = false, now
	switch result {
	case chat.QueueAccepted:
		q.queued++
	case chat.QueueUnclear: // it may be queued: no other until the session shows a sign
		q.queued = maxQueued
	default: // refused: the next mail may request a wake again
	}
}

// Active records a sign of the session: an outstanding wake has succeeded.
func (q *Queue) Active() { q.queued = 0 }

// Note records the queue's result of the last push, for the diagnostics (CHT-19).
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

// Problem returns what went wrong with the last push, "" if the queue accepted it.
func (q *Queue) Problem() string { return q.problem }
