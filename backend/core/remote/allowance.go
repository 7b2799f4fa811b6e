package remote

import (
	"time"

	"bridge/backend/core/bridge"
)

// Limits of what another PC brings, so that it cannot fill this PC's store or its sessions'
// attention (SEC-12). A PC that was away may bring Burst at once.
var (
	DecisionLimit = Limit{Burst: 300, PerMinute: 60, What: "decisions"}
	MessageLimit  = Limit{Burst: 12_000, PerMinute: 600, What: "messages"}
)

// Limit bounds how many things come from one PC.
type Limit struct {
	Burst     int
	PerMinute int
	What      string // plural
}

// Allowance counts against a Limit what one PC has brought. It is not safe for use by
// several goroutines at once. Its zero value is unused.
type Allowance struct {
	used float64   // of the burst
	at   time.Time // when used was computed
}

// Left returns how many more may come now.
func (a *Allowance) Left(limit Limit, now time.Time) int {
	if passed := now.Sub(a.at); passed > 0 {
		a.used = max(a.used-passed.Minutes()*float64(limit.PerMinute), 0)
	}
	a.at = now
	return max(limit.Burst-int(a.used+0.999), 0)
}

// Take counts what came.
func (a *Allowance) Take(count int) { a.used += float64(count) }

// Wait returns the time until count more may come.
func (a *Allowance) Wait(limit Limit, count int, now time.Time) time.Duration {
	a.Left(limit, now)
	missing := a.used + float64(count-limit.Burst)
	return time.Duration(max(missing, 0) / float64(limit.PerMinute) * float64(time.Minute))
}

// Error returns the Busy error for what is more than a limit.
func (l Limit) Error() error {
	return bridge.Errorf(bridge.Busy, "this PC takes %d %s a minute from another one: it takes the rest later", l.PerMinute, l.What)
}
