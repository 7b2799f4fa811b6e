package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
)

// lookEvery is the interval at which a run checks that its home exists.
const lookEvery = 10 * time.Second

// whileAtHome cancels the context once the home is gone, because then the run cannot be
// read, answered or ended. The home must be missing at two checks in a row, so that a
// replacement of the home does not count. stop ends the checks.
func whileAtHome(ctx context.Context, folder string, every time.Duration) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	home := filepath.Dir(filepath.Dir(folder))
	go func() {
		for missed := 0; ipc.Pause(ctx, every); {
			if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
				missed = 0
				continue
			}
			if missed++; missed == 2 {
				end(bridge.Errorf(bridge.NotFound, "the home of this run, %s, is gone", home))
			}
		}
	}()
	return ctx, func() { end(nil) }
}
