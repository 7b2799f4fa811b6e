package demo

import (
	"context"
	"errors"
	"os"
	"sync"

	"bridge/backend/platform/proc"
)

// Runners are the processes that drive the demo's jobs.
type Runners struct {
	lock sync.Mutex // guards all
	all  []*proc.Detached
}

// Add records the result of a runner's start and returns its process id or error.
func (r *Runners) Add(process *proc.Detached, err error) (pid int, _ error) {
	if err != nil {
		return 0, err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all = append(r.all, process)
	return process.PID, nil
}

// Wait returns when all runners have ended, and kills the remaining ones when ctx ends.
func (r *Runners) Wait(ctx context.Context) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	var err error
	for _, detached := range r.all {
		select {
		case <-detached.Done():
			continue
		case <-ctx.Done():
		}
		if process, findErr := os.FindProcess(detached.PID); findErr == nil {
			if killErr := process.Kill(); !errors.Is(killErr, os.ErrProcessDone) {
				err = errors.Join(err, killErr)
			}
		}
		<-detached.Done()
	}
	return err
}
