//go:build !linux && !windows && !darwin

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// keepsParent reports whether a process keeps the id of an ended parent.
const keepsParent = false

// find reports whether a process runs, and the parent of this process only. These
// systems have no common process list.
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
