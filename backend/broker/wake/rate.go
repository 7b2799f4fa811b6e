package wake

import (
	"fmt"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
)

// Rate holds when mail of agents woke one session, for the limits of its policy (QUI-03).
// It is lost with the broker, and when the session leaves: the next wake is then at once.
// The mail itself is in the store.
type Rate struct{ woken []int64 } // the wakes that still count, Unix epoch milliseconds, oldest first

// IsOfAgent reports whether an agent wrote the message itself. The limits of wakes are for
// such mail alone. The owner's words, and what Bridge reports of a job, wake at once.
func IsOfAgent(m bridge.Message) bool {
	return m.From.Agent != bridge.Owner && !job.IsReporter(m.From)
}

// Next returns when mail of an agent may wake the session: now, or later. Wakes after now
// do not count, because the clock was set back since.
func (r *Rate) Next(policy session.Policy, now int64) (at int64) {
	n := len(r.woken)
	if n == 0 || r.woken[n-1] > now {
		return now
	}
	at = max(now, r.woken[n-1]+policy.BetweenWakes.Milliseconds())
	if most := policy.WakesPerHour; most > 0 && n >= most {
		at = max(at, r.woken[n-most]+time.Hour.Milliseconds())
	}
	return at
}

// Woken records a wake, and forgets those that no limit counts any more.
func (r *Rate) Woken(policy session.Policy, now int64) {
	if n := len(r.woken); n > 0 && r.woken[n-1] > now {
		r.woken = nil
	}
	r.woken = append(r.woken, now)
	r.woken = r.woken[max(0, len(r.woken)-max(1, policy.WakesPerHour)):]
}

// Failed removes the wake of that time, because it had no effect.
func (r *Rate) Failed(at int64) {
	if i := slices.Index(r.woken, at); i >= 0 {
		r.woken = slices.Delete(r.woken, i, i+1)
	}
}

// Last returns the time of the last wake, 0 for none.
func (r *Rate) Last() int64 {
	if len(r.woken) == 0 {
		return 0
	}
	return r.woken[len(r.woken)-1]
}

// Reason returns why mail of an agent waits that may wake the session at that time.
func (r *Rate) Reason(name string, at, now int64) string {
	seconds := func(millis int64) time.Duration { return time.Duration(millis) * time.Millisecond }
	return fmt.Sprintf("waits: %s was woken %s ago; next wake in %s", name, bridge.Span(seconds(now-r.Last())), bridge.Span(seconds(at-now+999)))
}
