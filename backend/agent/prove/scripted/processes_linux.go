package scripted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Close kills every process that runs in this home, detached ones included,
// waits until they have gone and removes the files.
func (h *Home) Close(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		pids := h.Processes()
		if len(pids) == 0 {
			// A process that was just being started is in no list yet and may
			// still write: then there is another round.
			if err = os.RemoveAll(h.Root); err == nil {
				return nil
			}
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it may have ended by itself
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("ending the processes %v: %w", pids, errors.Join(err, ctx.Err()))
		}
	}
}

// Processes are the ids of those whose environment names this home.
func (h *Home) Processes() []int {
	mark := []byte("\x00HOME=" + h.Dir + "\x00")
	var pids []int
	for _, pid := range processes() {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, raw...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes are the ids of all there are.
func processes() []int {
	var pids []int
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
