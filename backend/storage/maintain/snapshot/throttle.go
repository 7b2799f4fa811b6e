package snapshot

import (
	"context"
	"time"
)

// When the broker counts as busy, and how often it is queried.
const (
	slowAnswer  = 50 * time.Millisecond  // faster answers never count as pressure
	slowFactor  = 4                      // times the fastest answer so far
	longAnswer  = 2 * time.Second        // the timeout of a query
	betweenAsks = 250 * time.Millisecond // also the rest of a pause
)

// Throttle returns a pause for BackupMessages that waits while the broker is under
// pressure: while ask, a query to it, is slow compared with the fastest answer so far. A
// missing broker counts as idle. Only one goroutine may use the pause. The pause fails if
// its context ends.
func Throttle(now func() time.Time, ask func(context.Context) error) func(context.Context) error {
	var checkedAt time.Time
	quickest := time.Duration(-1)
	pressed := func(ctx context.Context) bool {
		start := now()
		asking, cancel := context.WithTimeout(ctx, longAnswer)
		defer cancel()
		err := ask(asking)
		checkedAt = now()
		took := checkedAt.Sub(start)
		if err != nil {
			return asking.Err() != nil // a timeout; any other error is no answer at all
		}
		if quickest < 0 || took < quickest {
			quickest = took
		}
		return took > max(slowAnswer, slowFactor*quickest)
	}
	return func(ctx context.Context) error {
		if !checkedAt.IsZero() && now().Sub(checkedAt) < betweenAsks {
			return ctx.Err()
		}
		for pressed(ctx) {
			select {
			case <-time.After(betweenAsks):
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
		}
		return ctx.Err()
	}
}
