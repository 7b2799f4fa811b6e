package config

import (
	"time"

	"bridge/backend/core/bridge"
)

// Quiet are hours of the day, in the time of this PC. Its zero value has none.
type Quiet struct {
	From string `json:"from"` // as "22:00"
	To   string `json:"to"`   // the first minute that is not quiet; before From it is that of the next day
}

// clockForm is how an hour is written.
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

// Has reports whether a moment lies within the quiet hours.
func (q Quiet) Has(at time.Time) bool {
	now := at.Format(clockForm)
	if q.From <= q.To {
		return q.From <= now && now < q.To
	}
	return now >= q.From || now < q.To
}
