package runs

import (
	"time"

	"bridge/backend/core/job"
)

// Bounds of a run before somebody is asked (JOB-17).
const (
	sameCalls = 5
	silence   = 10 * time.Minute
)

// Watch tells when a run has spent its budget, its time or its sense, so that it
// pauses and somebody is asked; it never ends a run by itself. It holds no clock.
// While the run waits for somebody's word neither its time nor its silence counts.
type Watch struct {
	budget, timeout         float64 // what a stop allows once more; timeout in seconds
	budgetLeft, timeoutLeft float64 // at which the next stop is: spent and worked so far
	spent                   float64
	worked                  time.Duration // up to since
	since                   time.Time     // the begin of the present stretch of work
	heard                   time.Time
	paused                  bool
	call, result            string
	same                    int
}

// NewWatch watches a run that begins at start. A budget of 0 is none.
func NewWatch(budgetUSD float64, timeout time.Duration, start time.Time) *Watch {
	seconds := timeout.Seconds()
	return &Watch{budget: budgetUSD, budgetLeft: budgetUSD, timeout: seconds, timeoutLeft: seconds, since: start, heard: start}
}

// Hear says that something came from the agent.
func (w *Watch) Hear(at time.Time) { w.heard = later(w.heard, at) }

// Spend says what the run has cost in all.
func (w *Watch) Spend(totalUSD float64) { w.spent = max(w.spent, totalUSD) }

// Call says that the agent made a call and what came of it; both only have to tell
// one from another.
func (w *Watch) Call(call, result string) {
	if w.same > 0 && call == w.call && result == w.result {
		w.same++
		return
	}
	w.call, w.result, w.same = call, result, 1
}

// Stop returns for what the run has to wait at that time; "" when it may go on.
func (w *Watch) Stop(at time.Time) job.WaitFor {
	switch {
	case w.paused:
		return ""
	case w.budget > 0 && w.spent > w.budgetLeft:
		return job.ForBudget
	case w.timeout > 0 && w.workedAt(at).Seconds() >= w.timeoutLeft:
		return job.ForTime
	case w.same >= sameCalls:
		return job.ForRepeat
	case at.Sub(w.heard) >= silence:
		return job.ForSilence
	}
	return ""
}

// Next returns when Stop has to be asked again though nothing happened: at the end
// of the time or of the silence. The zero time while the run is paused.
func (w *Watch) Next(at time.Time) time.Time {
	if w.paused {
		return time.Time{}
	}
	next := w.heard.Add(silence)
	if w.timeout > 0 {
		left := time.Duration(w.timeoutLeft*float64(time.Second)) - w.workedAt(at)
		next = earlier(next, at.Add(left))
	}
	return next
}

// Pause stops the clocks: the run waits for somebody's word.
func (w *Watch) Pause(at time.Time) {
	if !w.paused {
		w.worked, w.paused = w.workedAt(at), true
	}
}

// Resume starts the clocks again.
func (w *Watch) Resume(at time.Time) {
	if w.paused {
		w.since, w.heard, w.paused = at, at, false
	}
}

// Allow says that the run may go on after a stop: as much again as it was given.
func (w *Watch) Allow(stop job.WaitFor, at time.Time) {
	w.Resume(at)
	switch stop {
	case job.ForBudget:
		w.budgetLeft = max(w.budgetLeft, w.spent) + w.budget
	case job.ForTime:
		w.timeoutLeft = max(w.timeoutLeft, w.workedAt(at).Seconds()) + w.timeout
	case job.ForRepeat:
		w.same = 0
	case job.ForSilence:
		w.heard = at
	case job.ForApproval, job.ForRetry: // nothing was used up
	}
}

func (w *Watch) workedAt(at time.Time) time.Duration {
	if w.paused || at.Before(w.since) {
		return w.worked
	}
	return w.worked + at.Sub(w.since)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
