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

// Mark is what all processes of one run of a job have: two variables in their
// environment and, where the system has them, a control group and a resource limit.
type Mark struct {
	Job   string // BRIDGE_JOB
	Token string // BRIDGE_JOB_TOKEN
	// Cgroup is the path of the run's control group as its runner wrote it down; "" for
	// none. The group's name follows from the other two.
	Cgroup string
}

// The variables of a Mark: they mark every process of a job, for hooks, plugins
// and MCP servers, too.
const (
	JobVariable   = "BRIDGE_JOB"
	TokenVariable = "BRIDGE_JOB_TOKEN"
)

// sure is how many looks in a row have to find nothing: a process that becomes
// another program has no environment to be known by for a moment.
const sure = 3

// pause lies between two looks at what a kill has left.
const pause = 20 * time.Millisecond

// Adopt makes this process the parent of whatever its descendants leave behind,
// so that it is found: on Linux as the subreaper, on Windows by a Job Object
// that also ends it all when this process ends in any way. It is called before
// the first of them is started. On other systems it is ErrUnavailable: what left
// its session is not found then.
func Adopt() error { return adopt() }

// End ends every process of a job and returns when none is left, or ctx is done;
// the error then names what is. It takes the trees below the known processes
// that still are who they were, on Linux those in the job's control group and those
// that carry the mark, whatever group, session or parent they have, and those that
// were left to this process if it has adopted them: these until the system says that
// there are none, for no look at processes that keep starting others is of one moment.
// The control group is ended first, as a whole where the kernel can do that, and removed
// at last. So it serves the runner at its end and, with the
// identities that a dead runner wrote down, anybody after it. This process and
// those above it are never ended. It kills, so whoever can ask politely does it
// before. The caller must not wait for a child of its own meanwhile: End collects
// them.
func End(ctx context.Context, mark Mark, known []job.Process) error {
	killErr := killCgroup(mark) // whom it leaves is ended below
	for empty := 0; ; {
		left, err := Left(mark, known)
		if empty++; len(left) > 0 || adopts() && hasChildren() {
			empty = 0
		}
		if empty == sure && isInCgroup(os.Getpid(), mark) {
			return err
		}
		if empty == sure {
			return errors.Join(err, killErr, RemoveCgroup(mark))
		}
		for _, process := range left {
			if killErr := killTree(process); killErr != nil {
				err = errors.Join(err, killErr)
			}
		}
		collect(left)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("end the processes %v of job %s: %w", left, mark.Job, ctx.Err()), err)
		}
	}
}

// Left names what runs of a job, as far as End would end it.
func Left(mark Mark, known []job.Process) ([]job.Process, error) {
	var left []job.Process
	for _, process := range known {
		if same(process) {
			left = append(left, process)
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
			left = add(left, pid)
		}
	}
	return withoutAbove(left), failed
}

// same reports whether the process still runs and is the one that was written
// down.
func same(process job.Process) bool {
	identity, err := proc.Identity(process.PID)
	return err == nil && identity == process.Identity
}

func add(left []job.Process, pid int) []job.Process {
	identity, err := proc.Identity(pid)
	known := slices.ContainsFunc(left, func(p job.Process) bool { return p.PID == pid })
	if err != nil || known {
		return left
	}
	return append(left, job.Process{PID: pid, Identity: identity, Role: "left"})
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

// withoutAbove leaves out this process and those that started it: a session of
// the job may be the one that asks.
func withoutAbove(left []job.Process) []job.Process {
	own := map[int]bool{os.Getpid(): true}
	for _, above := range proc.Ancestors(os.Getpid(), 64) {
		own[above.PID] = true
	}
	return slices.DeleteFunc(left, func(p job.Process) bool { return own[p.PID] })
}

// killTree ends a process that is still the one that was found.
func killTree(process job.Process) error {
	if !same(process) {
		return nil
	}
	return proc.KillTree(process.PID)
}
