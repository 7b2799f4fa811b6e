package jobfiles

import "time"

// Minutes returns the time until then in whole minutes, at least 0, or nil for the zero time.
func Minutes(until, now time.Time) *int64 {
	if until.IsZero() {
		return nil
	}
	minutes := max(0, int64(until.Sub(now).Round(time.Minute)/time.Minute))
	return &minutes
}
