package snapshot

import (
	"context"
	"time"
)

// When the broker is taken for pressed, and how often it is asked.
const (
	slowAnswer  = 50 * time.Millisecond  // quicker answers mean no pressure in any case
	slowFactor  = 4                      // times the quickest answer so far
	longAnswer  = 2 * time.Second        // a question is given up after it
	betweenAsks = 250 * time.Millisecond // also the rest of a pause
)

// Throttle returns a pause for BackupMessages that waits while the broker is under
// pressure: while ask, a question to it, takes long compared with the quickest
// answer so far. A broker that is not there has none to spare. The pause is for
// one goroutine.
func Throttle(now func() time.Time, ask func(context.Context) error) func(context.Context) error {
	var asked time.Time
	quickest := time.Duration(-1)
	pressed := func(ctx context.Context) bool {
		start := now()
		asking, cancel := context.WithTimeout(ctx, longAnswer)
		defer cancel()
		err := ask(asking)
		asked = now()
		took := asked.Sub(start)
		if err != nil {
			return asking.Err() != nil // it waited in vain; any other error is no answer at all
		}
		if quickest < 0 || took < quickest {
			quickest = took
		}
		return took > max(slowAnswer, slowFactor*quickest)
	}
	return func(ctx context.Context) error {
		if !asked.IsZero() && now().Sub(asked) < betweenAsks {
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
