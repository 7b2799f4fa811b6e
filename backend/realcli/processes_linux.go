package realcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	for pid := range processes() {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, raw...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killOrphans kills and reaps every process below this one: what outlived its
// parent is its child now. Killing one can set its children free, so it goes on
// until there is none.
func killOrphans() {
	for {
		for _, pid := range below(os.Getpid()) {
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it may have ended by itself
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}

// below lists the descendants of a process.
func below(root int) []int {
	children := map[int][]int{}
	for pid, parent := range processes() {
		children[parent] = append(children[parent], pid)
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// processes maps every process id to its parent's.
func processes() map[int]int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The second field is the name in parentheses and may hold anything.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	return parents
}
