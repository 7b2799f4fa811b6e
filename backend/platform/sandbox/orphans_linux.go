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

// leaders are the processes that this one has started as heads of sessions of their own,
// and waits for itself.
var leaders = struct {
	mu   sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// StartLeader starts a command that heads a session of its own. Where its environment has
// a run's mark, it also gets what marks the run's processes in the kernel: the control
// group that MakeCgroup has made, and a resource limit.
// Whoever waits for it calls Collected afterwards.
func StartLeader(cmd *exec.Cmd) error {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	if err := startMarked(cmd); err != nil {
		return err
	}
	leaders.pids[cmd.Process.Pid] = true
	return nil
}

// Collected says that nobody waits for a leader any more.
func Collected(pid int) {
	leaders.mu.Lock()
	defer leaders.mu.Unlock()
	delete(leaders.pids, pid)
}

const (
	// reapPause is the time between two looks while a child of this process's own stands
	// before the orphans.
	reapPause = 100 * time.Millisecond
	// reapLooks is how many looks such a child stays uncollected: whoever started a child
	// collects it as soon as it has ended, so one that is still there after half a minute
	// is an orphan, too.
	reapLooks = 300
)

// ReapOrphans collects processes that have ended and fell to this one, which has adopted
// them, until ctx is done: a job that starts many would use up the user's process numbers
// (SEC-08). It leaves alone what this process has started itself.
func ReapOrphans(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	var first firstChild
	for {
		var again <-chan time.Time
		if !first.reapBehind() {
			again = time.After(reapPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-again:
		}
	}
}

// firstChild is the child of this process's own that stands before the orphans.
type firstChild struct {
	pid   int
	looks int // how often it was there
}

// reapBehind collects what has ended. It reports whether nothing is left, and false when a
// child of this process's own stands before the others.
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
		if f.looks++; leaders.pids[pid] || isOfThisSession(pid) && f.looks < reapLooks {
			return false
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil {
			return true
		}
	}
}

// isOfThisSession reports whether a process is in this one's session: no process of a job
// is, whatever it does, for its agent heads another one.
func isOfThisSession(pid int) bool {
	theirs, err := unix.Getsid(pid)
	own, ownErr := unix.Getsid(0)
	return err != nil || ownErr != nil || theirs == own
}

// endedChild returns a child that has ended and was not collected, 0 where all run. It
// fails with ECHILD when there is no child.
func endedChild() (int, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return pidOf(&info), err
		}
	}
}
