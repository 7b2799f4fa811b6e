package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
)

// adopted means that orphans become children of this process; the kernel keeps this setting.
var adopted atomic.Bool

func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	adopted.Store(true)
	return nil
}

func adopts() bool { return adopted.Load() }

// marked returns the processes with the mark. A process with an unreadable
// environment belongs to another user.
func marked(mark Mark) ([]int, error) {
	if !mark.isWhole() {
		return nil, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("find the processes of job %s: %w", mark.Job, err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if carries(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// carries reports whether a process has the mark, as a resource limit or in its
// environment.
func carries(pid int, mark Mark) bool {
	if !mark.isWhole() {
		return false
	}
	if hasLimit(pid, mark) {
		return true
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && has(environ, JobVariable+"="+mark.Job) && has(environ, TokenVariable+"="+mark.Token)
}

func has(environ []byte, pair string) bool {
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+pair+"\x00"))
}

// collect takes the exit status of the children among ended, which would otherwise
// stay in the process list.
func collect(ended []job.Process) {
	for _, process := range ended {
		var status unix.WaitStatus
		_, _ = unix.Wait4(process.PID, &status, unix.WNOHANG, nil) // another process's child is not collected here
	}
}

// hasChildren reports whether this process has children. It collects ended ones
// except leaders, which have a waiter.
func hasChildren() bool {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	for {
		pid, err := endedChild()
		if err != nil || pid == 0 || leaders.pids[pid] {
			return err == nil
		}
		var status unix.WaitStatus
		_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil) // its waiter may have collected it first
	}
}
