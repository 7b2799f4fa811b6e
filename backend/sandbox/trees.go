package sandbox

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"bridge/backend/job"
	"bridge/backend/proc"
)

// Trees knows the processes of running jobs, and tells of any process whether it is
// part of one. What a process says of itself counts for nothing: it may leave the
// mark out of its environment, its session and its group. Its zero value knows none.
type Trees struct {
	mu    sync.Mutex // guards known
	known map[string]tree
}

// tree is what is known of one job.
type tree struct {
	mark   Mark
	runner job.Process   // all below it are the job's; itself it is not
	agents []job.Process // they and all below them are, also when the runner is gone
}

// Set says where the job of that mark runs.
func (t *Trees) Set(mark Mark, runner job.Process, agents []job.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]tree{}
	}
	t.known[mark.Job] = tree{mark, runner, slices.Clone(agents)}
}

// Forget lets go of a job of which nothing runs any more.
func (t *Trees) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

// maxDepth bounds the walk up from a process: nobody gets out of a job by starting
// one process below the other.
const maxDepth = 4096

// JobOf names the job that a process is part of, "" for none. An error says that the
// process is gone, so that nobody can tell: whoever asks must refuse it.
func (t *Trees) JobOf(pid int) (string, error) {
	trees := t.all()
	if len(trees) == 0 || pid <= 0 {
		return "", nil
	}
	if !proc.Alive(pid) {
		return "", fmt.Errorf("process %d: %w", pid, proc.ErrGone)
	}
	chain := []int{pid}
	for _, above := range proc.Ancestors(pid, maxDepth) {
		chain = append(chain, above.PID)
	}
	for _, tells := range []func(tree, []int) bool{tree.has, tree.marks} { // a mark may be another's
		for _, one := range trees {
			if tells(one, chain) {
				return one.mark.Job, nil
			}
		}
	}
	return "", nil
}

// JobOfConn names the job of the process at the other end of a TCP connection of this
// computer, "" for none. Where the system does not tell whose it is, it is none. An
// error says that whoever asked is gone.
func (t *Trees) JobOfConn(conn net.Conn) (string, error) {
	if len(t.all()) == 0 {
		return "", nil
	}
	pids, hidden, err := holdersOf(conn)
	if errors.Is(err, errors.ErrUnsupported) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, pid := range pids {
		if name, err := t.JobOf(pid); err != nil || name != "" {
			return name, err
		}
	}
	if len(pids) > 0 {
		return "", nil
	}
	for _, pid := range hidden { // it may be any of these: no process of a job's gets out by hiding itself
		if name, _ := t.JobOf(pid); name != "" {
			return name, nil
		}
	}
	return "", nil
}

func (t *Trees) all() []tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]tree, 0, len(t.known))
	for _, one := range t.known {
		all = append(all, one)
	}
	return all
}

// has reports whether the process that chain begins with, its ancestors behind it,
// stands in the tree.
func (t tree) has(chain []int) bool {
	for i, pid := range chain {
		is := func(process job.Process) bool {
			return process.PID == pid && (process.Identity == "" || same(process))
		}
		if i > 0 && is(t.runner) || slices.ContainsFunc(t.agents, is) {
			return true
		}
	}
	return false
}

// marks reports whether one of them carries the job's mark.
func (t tree) marks(chain []int) bool {
	return slices.ContainsFunc(chain, func(pid int) bool { return carries(pid, t.mark) })
}
