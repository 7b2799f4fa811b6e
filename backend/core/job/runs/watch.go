package runs

import (
	"time"

	"bridge/backend/core/job"
)

// Limits of a run before it stops and asks (JOB-17).
const (
	sameCalls = 5
	silence   = 10 * time.Minute
)

// Watch detects when a run has used up its budget or time, or loops, so that it pauses
// and asks. It never ends a run. It has no clock. While the run waits for a decision,
// neither its time nor its silence counts.
type Watch struct {
	budget, timeout         float64 // what each continuation adds; timeout in seconds
	budgetLeft, timeoutLeft float64 // the next limits of spent and worked
	spent                   float64
	worked                  time.Duration // the time worked until since
	since                   time.Time     // the start of the current stretch of work
	heardAt                 time.Time
	paused                  bool
	call, result            string
	same                    int
}

// NewWatch watches a run that begins at start. A budget of 0 means none.
func NewWatch(budgetUSD float64, timeout time.Duration, start time.Time) *Watch {
	seconds := timeout.Seconds()
	return &Watch{budget: budgetUSD, budgetLeft: budgetUSD, timeout: seconds, timeoutLeft: seconds, since: start, heardAt: start}
}

// Hear records output of the agent.
func (w *Watch) Hear(at time.Time) { w.heardAt = later(w.heardAt, at) }

// Spend records the total cost of the run.
func (w *Watch) Spend(totalUSD float64) { w.spent = max(w.spent, totalUSD) }

// Call records a call of the agent and its result; the texts only need to distinguish
// calls and results.
func (w *Watch) Call(call, result string) {
	if w.same > 0 && call == w.call && result == w.result {
		w.same++
		return
	}
	w.call, w.result, w.same = call, result, 1
}

// Stop returns the condition for which the run must wait at that time, or "".
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
	case at.Sub(w.heardAt) >= silence:
		return job.ForSilence
	}
	return ""
}

// Next returns when to call Stop again without an event: at the end of the time or
// silence limit. It returns the zero time while the run is paused.
func (w *Watch) Next(at time.Time) time.Time {
	if w.paused {
		return time.Time{}
	}
	next := w.heardAt.Add(silence)
	if w.timeout > 0 {
		remaining := time.Duration(w.timeoutLeft*float64(time.Second)) - w.workedAt(at)
		next = earlier(next, at.Add(remaining))
	}
	return next
}

// Pause stops the clocks: the run waits for a decision.
func (w *Watch) Pause(at time.Time) {
	if !w.paused {
		w.worked, w.paused = w.workedAt(at), true
	}
}

// Resume restarts the clocks.
func (w *Watch) Resume(at time.Time) {
	if w.paused {
		w.since, w.heardAt, w.paused = at, at, false
	}
}

// Allow permits the run to continue after a stop: it adds the original amount again.
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
		w.heardAt = at
	case job.ForApproval, job.ForRetry: // no limit was used up
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
