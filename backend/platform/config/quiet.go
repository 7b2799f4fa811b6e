package config

import (
	"time"

	"bridge/backend/core/bridge"
)

// Quiet is a daily period in this PC's local time. The zero value is empty.
type Quiet struct {
	From string `json:"from"` // as "22:00"
	To   string `json:"to"`   // the first minute after the period; if before From, it is on the next day
}

// clockForm is the format of a time of day.
const clockForm = "15:04"

func (q Quiet) check() error {
	if q == (Quiet{}) {
		return nil
	}
	for name, at := range map[string]string{"from": q.From, "to": q.To} {
		if _, err := time.Parse(clockForm, at); err != nil || len(at) != len(clockForm) {
			return bridge.Errorf(bridge.Invalid, "desktop.quiet.%s is %q: use a time of day as 22:00", name, at)
		}
	}
	return nil
}

// Has reports whether the time at lies within the period.
func (q Quiet) Has(at time.Time) bool {
	now := at.Format(clockForm)
	if q.From <= q.To {
		return q.From <= now && now < q.To
	}
	return now >= q.From || now < q.To
}

// End returns the end of the period that the time at lies in, in at's location, or
// the zero time if at lies outside.
func (q Quiet) End(at time.Time) time.Time {
	end, err := time.Parse(clockForm, q.To)
	if err != nil || !q.Has(at) {
		return time.Time{}
	}
	day := at
	if at.Format(clockForm) >= q.To {
		day = at.AddDate(0, 0, 1)
	}
	return time.Date(day.Year(), day.Month(), day.Day(), end.Hour(), end.Minute(), 0, 0, at.Location())
}
