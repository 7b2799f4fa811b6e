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
