package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leaders are the session leaders that this process has started and waits for.
var leaders = struct {
	mu   sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// StartLeader starts a command as a session leader. If its environment has a run's
// mark, the command also gets the kernel's marks: the control group of MakeCgroup,
// and a resource limit. The waiter must call Collected afterwards. It fails if the
// program cannot be started.
func StartLeader(cmd *exec.Cmd) error {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	if err := startMarked(cmd); err != nil {
		return err
	}
	leaders.pids[cmd.Process.Pid] = true
	return nil
}

// Collected reports that the waiter of a leader is done.
func Collected(pid int) {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	delete(leaders.pids, pid)
}

const (
	// reapPause is the time between two checks while an own child precedes the
	// orphans.
	reapPause = 100 * time.Millisecond
	// reapLooks is how many checks such a child stays uncollected. A starter
	// collects its child as soon as it ends, so one that remains for half a minute
	// is an orphan, too.
	reapLooks = 300
)

// ReapOrphans collects ended processes that this one has adopted, until ctx is
// done. Otherwise a job that starts many would use up the user's process ids
// (SEC-08). It skips processes that this process has started.
func ReapOrphans(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	var first firstChild
	for {
		var retry <-chan time.Time
		if !first.reapBehind() {
			retry = time.After(reapPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-retry:
		}
	}
}

// firstChild is the own child that precedes the orphans.
type firstChild struct {
	pid    int
	checks int // number of checks that found it
}

// reapBehind collects ended processes. It returns true if none is left, and false
// if an own child precedes the others.
func (f *firstChild) reapBehind() bool {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	for {
		pid, err := endedChild()
		if err != nil || pid == 0 {
			return true
		}
		if pid != f.pid {
			*f = firstChild{pid: pid}
		}
		if f.checks++; leaders.pids[pid] || isOfThisSession(pid) && f.checks < reapLooks {
			return false
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil {
			return true
		}
	}
}

// isOfThisSession reports whether a process is in this process's session. A job's
// process never is, because its agent leads another session.
func isOfThisSession(pid int) bool {
	session, err := unix.Getsid(pid)
	own, ownErr := unix.Getsid(0)
	return err != nil || ownErr != nil || session == own
}

// endedChild returns an ended, uncollected child, or 0 if all run. It fails with
// ECHILD without children.
func endedChild() (int, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return pidOf(&info), err
		}
	}
}
