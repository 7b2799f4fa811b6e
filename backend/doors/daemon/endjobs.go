package daemon

import (
	"context"
	"time"

	"bridge/backend/platform/ipc"
)

// endLook is how often it is looked whether all jobs have ended.
const endLook = 50 * time.Millisecond

// EndJobs ends the delegated jobs that go on, with all that they started, also those that
// somebody asks for meanwhile, and waits until none goes on, or ctx has ended. It is for
// a home that goes away: jobs outlive a broker.
func EndJobs(ctx context.Context, d *Daemon) error {
	if d.jobs == nil {
		return nil
	}
	asked := map[string]bool{}
	for {
		going := d.jobs.Recent(0)
		if len(going) == 0 {
			return nil
		}
		for _, one := range going {
			if asked[one.Job] {
				continue
			}
			if _, err := d.jobs.Cancel(one.Job); err != nil {
				return err
			}
			asked[one.Job] = true
		}
		if !ipc.Pause(ctx, endLook) {
			return ctx.Err()
		}
	}
}
