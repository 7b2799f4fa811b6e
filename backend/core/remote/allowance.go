package remote

import (
	"time"

	"bridge/backend/core/bridge"
)

// Limits of data from another PC, so that it cannot fill this PC's store or its
// sessions' attention (SEC-12). After an absence a PC may send Burst at once.
var (
	DecisionLimit = Limit{Burst: 300, PerMinute: 60, What: "decisions"}
	MessageLimit  = Limit{Burst: 12_000, PerMinute: 600, What: "messages"}
)

// Limit limits how many items come from one PC.
type Limit struct {
	Burst     int
	PerMinute int
	What      string // plural
}

// Allowance counts the items of one PC against a Limit. It is not safe for concurrent
// use. Its zero value is unused.
type Allowance struct {
	used float64   // of the burst
	at   time.Time // when used was computed
}

// Left returns how many more items may come now.
func (a *Allowance) Left(limit Limit, now time.Time) int {
	if passed := now.Sub(a.at); passed > 0 {
		a.used = max(a.used-passed.Minutes()*float64(limit.PerMinute), 0)
	}
	a.at = now
	return max(limit.Burst-int(a.used+0.999), 0)
}

// Take counts items that came.
func (a *Allowance) Take(count int) { a.used += float64(count) }

// Wait returns the time until count more items may come.
func (a *Allowance) Wait(limit Limit, count int, now time.Time) time.Duration {
	a.Left(limit, now)
	missing := a.used + float64(count-limit.Burst)
	return time.Duration(max(missing, 0) / float64(limit.PerMinute) * float64(time.Minute))
}

// Error returns the Busy error for items beyond a limit.
func (l Limit) Error() error {
	return bridge.Errorf(bridge.Busy, "this PC takes %d %s a minute from another one: it takes the rest later", l.PerMinute, l.What)
}
