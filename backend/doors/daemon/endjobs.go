package daemon

import (
	"context"
	"time"

	"bridge/backend/platform/ipc"
)

// endLook is the interval of the checks whether all jobs have ended.
const endLook = 50 * time.Millisecond

// EndJobs ends all running delegated jobs with their processes, also those created
// meanwhile. It waits until none runs, or fails if ctx ends. It is for a home that
// is removed, because jobs outlive a broker.
func EndJobs(ctx context.Context, d *Daemon) error {
	if d.jobs == nil {
		return nil
	}
	requested := map[string]bool{}
	for {
		going := d.jobs.Recent(0)
		if len(going) == 0 {
			return nil
		}
		for _, view := range going {
			if requested[view.Job] {
				continue
			}
			if _, err := d.jobs.Cancel(view.Job); err != nil {
				return err
			}
			requested[view.Job] = true
		}
		if !ipc.Pause(ctx, endLook) {
			return ctx.Err()
		}
	}
}
