package job

import (
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// State is the state of a job.
type State string

// The states. A continuation returns an ended job to queued.
const (
	Queued      State = "queued"      // waits in the queue for a slot
	Starting    State = "starting"    // its runner was started and has not reported yet
	Running     State = "running"     // its agent works
	Waiting     State = "waiting"     // for the condition in Wait
	Finished    State = "finished"    // with a non-empty answer
	Failed      State = "failed"      // with an error, or without an answer
	Refused     State = "refused"     // the model or its provider declined
	Limit       State = "limit"       // the account's usage is used up
	Cancelled   State = "cancelled"   // on request
	Interrupted State = "interrupted" // its runner is gone and left no envelope
)

var (
	activeStates = []State{Starting, Running, Waiting}
	endedStates  = []State{Finished, Failed, Refused, Limit, Cancelled, Interrupted}
)

// IsActive reports whether the job has a slot.
func (s State) IsActive() bool { return slices.Contains(activeStates, s) }

// IsEnded reports whether no more work follows unless the job is continued.
func (s State) IsEnded() bool { return slices.Contains(endedStates, s) }

// FieldStatus returns the field's status in jobs.json for this state.
func (s State) FieldStatus() string {
	switch s {
	case Finished:
		return "done"
	case Failed, Refused, Limit:
		return "failed"
	case Cancelled, Interrupted:
		return string(s)
	default:
		return "running"
	}
}

// stateOf returns the state of an entry. Every writer updates the field's status, so a
// contradicting state is older.
func stateOf(status string, state State) State {
	if state.FieldStatus() == status && (state == Queued || state.IsActive() || state.IsEnded()) {
		return state
	}
	switch status {
	case "done":
		return Finished
	case "failed":
		return Failed
	case "cancelled":
		return Cancelled
	case "running":
		return Running
	}
	return Interrupted // a status of another program: none of our runs has it
}

// WaitFor is the condition that a waiting job waits for.
type WaitFor string

// The conditions. All but the last need a decision.
const (
	ForApproval WaitFor = "approval"
	ForBudget   WaitFor = "budget"  // its budget is used up
	ForTime     WaitFor = "timeout" // its time is used up
	ForRepeat   WaitFor = "repeat"  // it made the same call with the same result five times
	ForSilence  WaitFor = "silence" // ten minutes without output
	ForRetry    WaitFor = "retry"   // the provider is retried at Until
)

// Wait is the condition that a waiting job waits for, and until when, if known.
type Wait struct {
	For   WaitFor `json:"for"`
	ID    string  `json:"id,omitempty"` // of the approval or the question
	Until Millis  `json:"until,omitempty"`
	Since Millis  `json:"since,omitempty"` // of a stop
}

// StoppedFor returns the limit that stopped the job until a decision, or "".
func (j *Job) StoppedFor() WaitFor {
	if j.State != Waiting || j.Wait == nil || !slices.Contains([]WaitFor{ForBudget, ForTime, ForRepeat, ForSilence}, j.Wait.For) {
		return ""
	}
	return j.Wait.For
}

// Transition is one change of a job's state. The functions below create it, and
// Registry.Apply performs it; from lists the permitted states.
type Transition struct {
	name  string
	from  []State
	to    State
	run   int // the number of the run; 0 is any
	apply func(*Job)
}

// Start assigns a slot to the next job in the queue, which then gets a runner.
func Start(at time.Time) Transition {
	return Transition{name: "start", from: []State{Queued}, to: Starting, apply: func(j *Job) {
		j.Run++
		j.StartedAt, j.FinishedAt, j.Wait, j.Ended = MillisOf(at), 0, nil, ""
		j.CancelAsked, j.LimitUntil, j.ResultSent = false, 0, false
		j.Host = nil // another process will run this run
		if j.FirstStartedAt == 0 {
			j.FirstStartedAt = j.StartedAt
		}
	}}
}

// Work records that the agent of that run works, also after a wait.
func Work(run int) Transition {
	return Transition{name: "work", run: run, from: activeStates, to: Running, apply: func(j *Job) { j.markStarted(); j.Wait = nil }}
}

// Pause records that the agent of that run waits.
func Pause(run int, wait Wait) Transition {
	return Transition{name: "wait", run: run, from: activeStates, to: Waiting, apply: func(j *Job) { j.markStarted(); j.Wait = &wait }}
}

// End records the result of that run. If the run ended before a requested cancel, its
// own result counts.
func End(run int, outcome Outcome, at time.Time) Transition {
	from := activeStates
	if !outcome.State.IsEnded() || outcome.State == Interrupted {
		from = nil // an envelope cannot have this end
	}
	return Transition{name: "end as " + string(outcome.State), run: run, from: from, to: outcome.State, apply: func(j *Job) {
		if outcome.Ended != EndedNotStarted {
			j.markStarted()
		}
		j.FinishedAt, j.Wait, j.Ended = MillisOf(at), nil, outcome.Ended
		j.LimitUntil = MillisOf(outcome.Until)
	}}
}

// Lose records that the runner of that run is gone without an envelope. If the agent may
// have the prompt, the messages in it are not sent again.
func Lose(run int, at time.Time, prompted bool) Transition {
	return Transition{name: "interrupt", run: run, from: activeStates, to: Interrupted, apply: func(j *Job) {
		if prompted {
			j.markStarted()
		}
		j.FinishedAt, j.Wait, j.Ended = MillisOf(at), nil, EndedRunnerGone
	}}
}

// Drop removes a job from the queue before it ran.
func Drop(at time.Time) Transition {
	return Transition{name: "cancel", from: []State{Queued}, to: Cancelled, apply: func(j *Job) {
		j.FinishedAt, j.Ended, j.QueuedMessages, j.QueuedAuthors = MillisOf(at), EndedCancelled, nil, nil
		j.ResultSent = j.ResultSent || j.Run == 0 // there is no result to send
	}}
}

// requeue puts an ended job back in the queue (JOB-05).
func requeue() Transition {
	return Transition{name: "continue", from: endedStates, to: Queued, apply: func(j *Job) { j.Wait = nil }}
}

// markStarted records that the agent has the queued messages: they are not sent again.
func (j *Job) markStarted() {
	if j.State == Starting {
		j.QueuedMessages, j.QueuedAuthors = nil, nil
	}
}

// carryOut performs the transition, or fails with Conflict and changes nothing.
func (t Transition) carryOut(j *Job) error {
	if t.run != 0 && t.run != j.Run {
		return bridge.Errorf(bridge.Conflict, "%s is at its run %d: what became of run %d does not count any more", j.Name, j.Run, t.run)
	}
	if !slices.Contains(t.from, j.State) {
		return bridge.Errorf(bridge.Conflict, "%s is %s: it cannot %s", j.Name, j.State, t.name)
	}
	t.apply(j) // apply needs the previous state
	j.State = t.to
	return nil
}
