package jobfiles

import "time"

// Minutes is how long it is until then, in whole minutes and at least none.
func Minutes(until, now time.Time) *int64 {
	if until.IsZero() {
		return nil
	}
	left := max(0, int64(until.Sub(now).Round(time.Minute)/time.Minute))
	return &left
}
