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

// lookEvery is how often a run looks whether its home is still there.
const lookEvery = 10 * time.Second

// whileAtHome ends the context once the home is gone: nobody can reach the run any
// more, to read it, to answer it or to end it. It has to be gone twice in a row, so
// that a home that is put in the place of another is not taken for that. stop ends
// the looking.
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
