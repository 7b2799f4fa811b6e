package job

import (
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// State is where a job is.
type State string

// The states. A continuation takes an ended job back to queued.
const (
	Queued      State = "queued"      // stands in line for a slot
	Starting    State = "starting"    // its runner was started and has not reported yet
	Running     State = "running"     // its agent works
	Waiting     State = "waiting"     // for what Wait says
	Finished    State = "finished"    // with an answer that is not empty
	Failed      State = "failed"      // with an error, or without an answer
	Refused     State = "refused"     // the model or its provider declined
	Limit       State = "limit"       // the account's usage is used up
	Cancelled   State = "cancelled"   // on somebody's word
	Interrupted State = "interrupted" // its runner is gone and left no envelope
)

var (
	activeStates = []State{Starting, Running, Waiting}
	endedStates  = []State{Finished, Failed, Refused, Limit, Cancelled, Interrupted}
)

// IsActive reports whether the job holds a slot.
func (s State) IsActive() bool { return slices.Contains(activeStates, s) }

// IsEnded reports whether nothing more comes unless the job is continued.
func (s State) IsEnded() bool { return slices.Contains(endedStates, s) }

// FieldStatus is the word that jobs.json is known by in the field for this state.
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

// stateOf is the state of an entry. The field's status is the one that every
// reader writes, so a state that contradicts it is older than it.
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
	return Interrupted // a word of somebody else: nothing of ours runs it
}

// WaitFor is what a waiting job waits for.
type WaitFor string

// What a job waits for. All but the last wait for somebody's word.
const (
	ForApproval WaitFor = "approval"
	ForBudget   WaitFor = "budget"  // it has spent what it was given
	ForTime     WaitFor = "timeout" // it has run for as long as it was given
	ForRepeat   WaitFor = "repeat"  // it made the same call with the same result five times
	ForSilence  WaitFor = "silence" // nothing was heard of it for ten minutes
	ForRetry    WaitFor = "retry"   // the provider is asked again at Until
)

// Wait says what a waiting job waits for, and until when where that is known.
type Wait struct {
	For   WaitFor `json:"for"`
	ID    string  `json:"id,omitempty"` // of the approval or the question
	Until Millis  `json:"until,omitempty"`
	Since Millis  `json:"since,omitempty"` // of a stop
}

// StoppedFor says what the job has used up, so that it waits for somebody's word to go
// on; "" while it waits for nothing of that kind.
func (j *Job) StoppedFor() WaitFor {
	if j.State != Waiting || j.Wait == nil || !slices.Contains([]WaitFor{ForBudget, ForTime, ForRepeat, ForSilence}, j.Wait.For) {
		return ""
	}
	return j.Wait.For
}

// Transition is one change of a job's state. It is made by the functions below
// and carried out by Registry.Apply; from is from where it may be made.
type Transition struct {
	name  string
	from  []State
	to    State
	run   int // of the job's runs; 0 is any
	apply func(*Job)
}

// Start gives the job a slot: the next one in line gets a runner.
func Start(at time.Time) Transition {
	return Transition{name: "start", from: []State{Queued}, to: Starting, apply: func(j *Job) {
		j.Run++
		j.StartedAt, j.FinishedAt, j.Wait, j.Ended = MillisOf(at), 0, nil, ""
		j.CancelAsked, j.LimitUntil, j.ResultSent = false, 0, false
		j.Host = nil // another process will run this one
		if j.FirstStartedAt == 0 {
			j.FirstStartedAt = j.StartedAt
		}
	}}
}

// Work says that the agent of that run works, also again after it waited.
func Work(run int) Transition {
	return Transition{name: "work", run: run, from: activeStates, to: Running, apply: func(j *Job) { j.begun(); j.Wait = nil }}
}

// Pause says that the agent of that run waits.
func Pause(run int, wait Wait) Transition {
	return Transition{name: "wait", run: run, from: activeStates, to: Waiting, apply: func(j *Job) { j.begun(); j.Wait = &wait }}
}

// End takes the result of that run. What was asked to be cancelled and came to its
// end first has ended as it says.
func End(run int, outcome Outcome, at time.Time) Transition {
	from := activeStates
	if !outcome.State.IsEnded() || outcome.State == Interrupted {
		from = nil // it is no end that an envelope can tell
	}
	return Transition{name: "end as " + string(outcome.State), run: run, from: from, to: outcome.State, apply: func(j *Job) {
		if outcome.Ended != EndedNotStarted {
			j.begun()
		}
		j.FinishedAt, j.Wait, j.Ended = MillisOf(at), nil, outcome.Ended
		j.LimitUntil = MillisOf(outcome.Until)
	}}
}

// Lose says that the runner of that run is gone and has left no envelope.
func Lose(run int, at time.Time) Transition {
	return Transition{name: "interrupt", run: run, from: activeStates, to: Interrupted, apply: func(j *Job) {
		j.FinishedAt, j.Wait, j.Ended = MillisOf(at), nil, EndedRunnerGone
	}}
}

// Drop takes a job out of the line before it ran.
func Drop(at time.Time) Transition {
	return Transition{name: "cancel", from: []State{Queued}, to: Cancelled, apply: func(j *Job) {
		j.FinishedAt, j.Ended, j.QueuedMessages = MillisOf(at), EndedCancelled, nil
		j.ResultSent = j.ResultSent || j.Run == 0 // there is nothing to be sent
	}}
}

// requeue puts an ended job back in line (JOB-05).
func requeue() Transition {
	return Transition{name: "continue", from: endedStates, to: Queued, apply: func(j *Job) { j.Wait = nil }}
}

// begun says that the agent has what stood in line for it: it is not said again.
func (j *Job) begun() {
	if j.State == Starting {
		j.QueuedMessages = nil
	}
}

// carryOut carries the transition out, or says why it may not be made and changes
// nothing.
func (t Transition) carryOut(j *Job) error {
	if t.run != 0 && t.run != j.Run {
		return bridge.Errorf(bridge.Conflict, "%s is at its run %d: what became of run %d does not count any more", j.Name, j.Run, t.run)
	}
	if !slices.Contains(t.from, j.State) {
		return bridge.Errorf(bridge.Conflict, "%s is %s: it cannot %s", j.Name, j.State, t.name)
	}
	t.apply(j) // sees the state before
	j.State = t.to
	return nil
}
