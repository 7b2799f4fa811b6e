package job

import (
	"strings"
	"time"
)

// These ends come from the runner or the broker, not from an agent.
const (
	EndedCancelled  EndReason = "cancelled"   // on request
	EndedRunnerGone EndReason = "runner_gone" // without an envelope
	EndedNotStarted EndReason = "not_started" // the agent could not be started
)

// Outcome is the outcome of a run.
type Outcome struct {
	State State
	Ended EndReason
	Until time.Time // of Limit: when the limit ends, if known
}

// OutcomeOf returns the outcome of a run from the end of its last turn (JOB-15). Only
// an answer with text is a success. An empty answer, a refusal, a used up limit and a
// conversation that is too long have separate ends. cancel reports that the end was
// requested.
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

// retryDelays returns the pauses before retries at a provider (JOB-16).
func retryDelays() []time.Duration {
	return []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second}
}

// RetryAfter returns how long to wait before a retry of an ended turn, and whether to
// retry. tried counts earlier retries. It permits three retries after a provider's
// failure, and none for a used up limit or a permanent cause.
func RetryAfter(why EndReason, tried int) (wait time.Duration, retry bool) {
	delays := retryDelays()
	if !why.IsTransient() || tried < 0 || tried >= len(delays) {
		return 0, false
	}
	return delays[tried], true
}

// ResumeAt returns when a job that a limit ended resumes automatically, and whether. It
// requires the owner's setting and a known time.
func ResumeAt(outcome Outcome, resumeAtReset bool) (at time.Time, resumes bool) {
	if outcome.State != Limit || !resumeAtReset || outcome.Until.IsZero() {
		return time.Time{}, false
	}
	return outcome.Until, true
}
