package remote

import (
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// How a requester keeps up with its jobs on another PC (RMT-13, RMT-15).
const (
	PollEvery  = 2 * time.Second
	MirrorLife = 90 * time.Second
	// PollGap is the least time between two polls of one pair: they are half of what a
	// pair may ask (RMT-14), however many jobs run, and leave the rest to commands.
	PollGap = 200 * time.Millisecond
	// LimitPoll is how often a job is asked for that a usage limit has ended: it may be
	// continued there.
	LimitPoll = time.Minute
	// Patience is how long a request may stay unanswered. A spawn may for longer before
	// it is ambiguous, and so may an answer to an approval, which waits for the runner.
	Patience      = 10 * time.Second
	SpawnPatience = 20 * time.Second
)

// PatienceFor is how long a request of that operation may stay unanswered.
func PatienceFor(operation Operation) time.Duration {
	if operation == Spawn || operation == Approval {
		return SpawnPatience
	}
	return Patience
}

// ErrUnanswered says that a PC was asked and did not answer: whether it did as it was
// asked nobody knows. It is never asked again by itself.
func ErrUnanswered(host string, operation Operation) error {
	return &unanswered{bridge.Error{
		Code:    bridge.Unavailable,
		Message: host + " did not answer in " + bridge.Span(PatienceFor(operation)) + ": whether it did what was asked is not known; look at the job before you ask again",
	}}
}

type unanswered struct{ said bridge.Error }

func (u *unanswered) Error() string { return u.said.Message }
func (u *unanswered) Unwrap() error { return &u.said }

// IsUnanswered reports whether an error is ErrUnanswered's.
func IsUnanswered(err error) bool {
	_, is := err.(*unanswered) //nolint:errorlint // it is made for whoever asked, and never wrapped
	return is
}

// Mirror is what the requester knows of how fresh its knowledge of a job is.
type Mirror struct {
	Status  job.State
	AskedAt time.Time // of its spawn
	HeardAt time.Time // zero for never
	// Refused is why that PC tells nothing of it any more; "" is none.
	Refused string
}

// IsFresh reports whether it can be shown as the present state; a job that has ended
// does not change any more.
func (m Mirror) IsFresh(now time.Time) bool {
	return m.Status.IsEnded() || !m.HeardAt.IsZero() && now.Sub(m.HeardAt) < MirrorLife
}

// Doubt says what is shown where the state may not be the present one; "" is no doubt.
func (m Mirror) Doubt(host string, now time.Time) string {
	switch {
	case m.IsFresh(now):
		return ""
	case m.HeardAt.IsZero() && now.Sub(m.AskedAt) < SpawnPatience:
		return "" // it is being asked
	case m.HeardAt.IsZero():
		return host + " did not say whether the job was started: look there before you ask again"
	case m.Refused != "":
		return "not heard of since " + clock(m.HeardAt, now) + ": " + m.Refused
	}
	return "not heard of since " + clock(m.HeardAt, now)
}

// clock is the time of day as the clock of now shows it, with the day where that is
// another one.
func clock(at, now time.Time) string {
	at = at.In(now.Location())
	switch {
	case at.Year() != now.Year():
		return at.Format("2 Jan 2006 15:04")
	case at.YearDay() != now.YearDay():
		return at.Format("2 Jan 15:04")
	}
	return at.Format("15:04")
}
