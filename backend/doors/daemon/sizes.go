package daemon

import (
	"time"

	"bridge/backend/storage/maintain/check"
)

const (
	// sizesRest is how long a daemon has been up before it looks at the home's size:
	// one that is gone sooner was not there for that.
	sizesRest = time.Minute
	// sizesLook bounds the time between two looks at whether a point is due: a timer
	// stands still while the computer sleeps.
	sizesLook = time.Hour
)

// sizesLoop adds a record of the home's sizes once a day.
func (d *Daemon) sizesLoop() {
	wait := sizesRest
	for {
		select {
		case <-time.After(wait):
		case <-d.tasks.Done():
			return
		}
		wait = sizesLook
		care := d.maintenance()
		if d.opts.Now().Before(check.NextSizes(care.Home)) {
			continue
		}
		if err := check.RecordSizes(d.tasks.Context(), care.Worker()); err != nil && !d.tasks.HasEnded() {
			d.opts.Log.Warn("the home's size could not be recorded", "err", err)
		}
	}
}
