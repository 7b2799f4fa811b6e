package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
)

// Mark identifies all processes of one run of a job: two variables in their environment
// and, if the system supports them, a control group and a resource limit.
type Mark struct {
	Job   string // BRIDGE_JOB
	Token string // BRIDGE_JOB_TOKEN
	// Cgroup is the path of the run's control group as its runner recorded it, or
	// "". The group's name derives from the other two.
	Cgroup string
}

// The variables of a Mark. They also mark every process of a job for hooks, plugins
// and MCP servers.
const (
	JobVariable   = "BRIDGE_JOB"
	TokenVariable = "BRIDGE_JOB_TOKEN"
)

// sure is how many checks in a row must find nothing: a process briefly has no
// environment during exec.
const sure = 3

// pause is the time between two checks after a kill.
const pause = 20 * time.Millisecond

// Adopt makes this process the parent of its descendants' orphans, so that they can
// be found. On Linux it becomes the subreaper. On Windows it enters a Job Object
// that also ends all members when this process ends. Call it before the first child
// starts. On other systems it fails with ErrUnavailable: processes that left their
// session are not found there.
func Adopt() error { return adopt() }

// End ends every process of a job and returns when none is left. If ctx ends first,
// it fails and names the rest. It ends the trees below the known processes whose
// identity still matches. On Linux it also ends the members of the control group
// and every process with the mark, in any group, session or parent. Then it ends
// adopted orphans until the system reports none, because a check of processes that
// keep starting others is never a snapshot. It kills the control group first, if
// the kernel can, and removes it last. The runner uses it at its end, and others
// use it with the identities that a dead runner recorded. It never ends this
// process or its ancestors. It kills, so try a polite end before. The caller must
// not wait for its own child meanwhile: End collects them.
func End(ctx context.Context, mark Mark, known []job.Process) error {
	killErr := killCgroup(mark) // the remaining processes are ended below
	for empty := 0; ; {
		remaining, err := Left(mark, known)
		if empty++; len(remaining) > 0 || adopts() && hasChildren() {
			empty = 0
		}
		if empty == sure && isInCgroup(os.Getpid(), mark) {
			return err
		}
		if empty == sure {
			return errors.Join(err, killErr, RemoveCgroup(mark))
		}
		for _, process := range remaining {
			if killErr := killTree(process); killErr != nil {
				err = errors.Join(err, killErr)
			}
		}
		collect(remaining)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("end the processes %v of job %s: %w", remaining, mark.Job, ctx.Err()), err)
		}
	}
}

// Left returns the running processes of a job that End would end. It fails if the
// system's list of processes is unreadable, and then returns those that it found.
func Left(mark Mark, known []job.Process) ([]job.Process, error) {
	var remaining []job.Process
	for _, process := range known {
		if same(process) {
			remaining = append(remaining, process)
		}
	}
	found := []func() ([]int, error){
		func() ([]int, error) { return inCgroup(mark) }, func() ([]int, error) { return marked(mark) },
	}
	if adopts() {
		found = append(found, ownChildren)
	}
	var failed error
	for _, find := range found {
		pids, err := find()
		failed = errors.Join(failed, err)
		for _, pid := range pids {
			remaining = add(remaining, pid)
		}
	}
	return withoutAbove(remaining), failed
}

// same reports whether the process still runs and has the recorded identity.
func same(process job.Process) bool {
	identity, err := proc.Identity(process.PID)
	return err == nil && identity == process.Identity
}

func add(remaining []job.Process, pid int) []job.Process {
	identity, err := proc.Identity(pid)
	known := slices.ContainsFunc(remaining, func(p job.Process) bool { return p.PID == pid })
	if err != nil || known {
		return remaining
	}
	return append(remaining, job.Process{PID: pid, Identity: identity, Role: "left"})
}

func ownChildren() ([]int, error) {
	children, err := proc.Children(os.Getpid())
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, child := range children {
		pids = append(pids, child.PID)
	}
	return pids, nil
}

// withoutAbove omits this process and its ancestors: a session of the job may be
// the caller.
func withoutAbove(remaining []job.Process) []job.Process {
	own := map[int]bool{os.Getpid(): true}
	for _, above := range proc.Ancestors(os.Getpid(), 64) {
		own[above.PID] = true
	}
	return slices.DeleteFunc(remaining, func(p job.Process) bool { return own[p.PID] })
}

// killTree ends the tree of a process that still has the recorded identity.
func killTree(process job.Process) error {
	if !same(process) {
		return nil
	}
	return proc.KillTree(process.PID)
}
