package remote

import (
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Polls of a requester for its jobs on another PC (RMT-13, RMT-15).
const (
	PollEvery  = 2 * time.Second
	MirrorLife = 90 * time.Second
	// PollGap is the shortest time between two polls of one pair, for any number of jobs.
	// So polls use half of a pair's request limit (RMT-14), and leave the rest to commands.
	PollGap = 200 * time.Millisecond
	// LimitPoll is the poll interval of a job that a usage limit has ended: it may
	// continue there.
	LimitPoll = time.Minute
	// RequestTimeout is the timeout of a request. A spawn has a longer one before it is
	// ambiguous. So has an answer to an approval, because it waits for the runner.
	RequestTimeout = 10 * time.Second
	SpawnTimeout   = 20 * time.Second
)

// TimeoutFor returns the timeout of a request of that operation.
func TimeoutFor(operation Operation) time.Duration {
	if operation == Spawn || operation == Approval {
		return SpawnTimeout
	}
	return RequestTimeout
}

// ErrUnanswered returns the error for a request without an answer: its outcome is
// unknown. It is never resent automatically.
func ErrUnanswered(host string, operation Operation) error {
	return &unanswered{bridge.Error{
		Code:    bridge.Unavailable,
		Message: host + " did not answer in " + bridge.Span(TimeoutFor(operation)) + ": whether it did what was asked is not known; look at the job before you ask again",
	}}
}

type unanswered struct{ err bridge.Error }

func (u *unanswered) Error() string { return u.err.Message }

// Unwrap returns the error with the code Unavailable.
func (u *unanswered) Unwrap() error { return &u.err }

// IsUnanswered reports whether an error is from ErrUnanswered.
func IsUnanswered(err error) bool {
	_, is := err.(*unanswered) //nolint:errorlint // it is made for whoever asked, and never wrapped
	return is
}

// Mirror is the requester's data about the age of its knowledge of a job.
type Mirror struct {
	Status  job.State
	AskedAt time.Time // of its spawn
	HeardAt time.Time // zero for never
	// Refused is why that PC no longer reports on the job, or "".
	Refused string
}

// IsFresh reports whether the state counts as current; an ended job does not change any
// more.
func (m Mirror) IsFresh(now time.Time) bool {
	return m.Status.IsEnded() || !m.HeardAt.IsZero() && now.Sub(m.HeardAt) < MirrorLife
}

// Doubt returns why the shown state may be out of date, or "".
func (m Mirror) Doubt(host string, now time.Time) string {
	switch {
	case m.IsFresh(now):
		return ""
	case m.HeardAt.IsZero() && now.Sub(m.AskedAt) < SpawnTimeout:
		return "" // the request is in progress
	case m.HeardAt.IsZero():
		return host + " did not say whether the job was started: look there before you ask again"
	case m.Refused != "":
		return "not heard of since " + clock(m.HeardAt, now) + ": " + m.Refused
	}
	return "not heard of since " + clock(m.HeardAt, now)
}

// clock returns the time of day in the time zone of now, with the date if it differs.
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
