package job

import (
	"strings"
	"time"
)

// Ends that no agent tells: the runner or the broker saw them.
const (
	EndedCancelled  EndReason = "cancelled"   // on somebody's word
	EndedRunnerGone EndReason = "runner_gone" // without an envelope
	EndedNotStarted EndReason = "not_started" // the agent could not be started
)

// Outcome is what became of a run.
type Outcome struct {
	State State
	Ended EndReason
	Until time.Time // of Limit: when it is over, as far as anybody said
}

// OutcomeOf judges the end of a run's last turn (JOB-15). An answer with something
// in it is the only success: whatever the agent calls its end, an empty answer, a
// refusal, a used up limit and a conversation that is too long are ends of their
// own. cancel says that somebody asked for the end.
func OutcomeOf(end TurnEnded, cancel bool) Outcome {
	outcome := Outcome{State: Failed, Ended: end.Why}
	switch end.Why {
	case EndAnswer:
		if strings.TrimSpace(end.Text) == "" {
			outcome.Ended = EndEmpty
			break
		}
		return Outcome{State: Finished, Ended: EndAnswer}
	case EndRefusal:
		outcome.State = Refused
	case EndLimit:
		outcome.State, outcome.Until = Limit, end.Until
	case "":
		outcome.Ended = EndFailed
	default: // failed, for the reason that was given
	}
	if cancel {
		return Outcome{State: Cancelled, Ended: EndedCancelled}
	}
	return outcome
}

// retryDelays are the pauses before a provider is asked again (JOB-16).
func retryDelays() []time.Duration {
	return []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second}
}

// RetryAfter says how long to wait before a run that ended so is tried again, and
// whether at all. tried counts the tries again so far. What a provider's own trouble
// ended is, three times; a used up limit never, nor whatever would end the same.
func RetryAfter(why EndReason, tried int) (wait time.Duration, again bool) {
	delays := retryDelays()
	if !why.IsTransient() || tried < 0 || tried >= len(delays) {
		return 0, false
	}
	return delays[tried], true
}

// ResumeAt says when a job that a limit ended goes on by itself, and whether: the
// owner has to want it, and somebody has to have said when.
func ResumeAt(outcome Outcome, resumeAtReset bool) (at time.Time, resumes bool) {
	if outcome.State != Limit || !resumeAtReset || outcome.Until.IsZero() {
		return time.Time{}, false
	}
	return outcome.Until, true
}
