//go:build !linux && !windows && !darwin

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// keepsParent says that a process keeps the number of a parent that has ended.
const keepsParent = false

// find knows whether a process runs and, of ours, which one started it; these
// systems have no process list that is the same on all of them.
func find(pid int) (Process, error) {
	if pid == os.Getpid() {
		return Process{PID: pid, Parent: os.Getppid(), group: syscall.Getpgrp()}, nil
	}
	err := syscall.Kill(pid, 0)
	if errors.Is(err, syscall.ESRCH) {
		return Process{}, ErrGone
	}
	return Process{PID: pid}, nil
}

func list() ([]Process, error) { return nil, nil }

func bootID() (string, error) { return "", errors.ErrUnsupported }

func calendar(uint64) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
