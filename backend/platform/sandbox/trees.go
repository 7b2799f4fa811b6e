package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
)

// Trees knows the processes of running jobs and reports whether a process belongs
// to one. It does not trust a process's own claims: a process can drop the mark
// from its environment, its session and its group. A process belongs to a job by
// its control group, its resource limit, its ancestors, or because Record saw it
// below the job's runner. The zero value knows no jobs.
type Trees struct {
	mu    sync.Mutex // guards known
	known map[string]tree
}

// tree holds the known facts of one job.
type tree struct {
	mark   Mark
	runner job.Process   // all processes below it belong to the job, but not the runner itself
	agents []job.Process // they and all below them belong to it, even after the runner ended
	seen   []job.Process // likewise: found by Record below the runner, and still running
}

// Set records where the job of that mark runs.
func (t *Trees) Set(mark Mark, runner job.Process, agents []job.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]tree{}
	}
	var seen []job.Process
	if before := t.known[mark.Job]; before.mark.Token == mark.Token { // the same run
		seen = before.seen
	}
	t.known[mark.Job] = tree{mark: mark, runner: runner, agents: slices.Clone(agents), seen: seen}
}

// Record records every process below the runner of a job by its id and start. It belongs to
// the job even if its runner has died (SEC-08). It fails if the process list is unreadable.
func (t *Trees) Record() error {
	trees := slices.DeleteFunc(t.all(), func(tree tree) bool {
		return tree.runner.PID <= 0 || tree.runner.Identity != "" && !same(tree.runner)
	})
	if len(trees) == 0 {
		return nil
	}
	var runners []int
	for _, tree := range trees {
		runners = append(runners, tree.runner.PID)
	}
	below, err := proc.BelowEach(runners)
	for _, tree := range trees {
		if tree.runner.Identity != "" && !same(tree.runner) {
			continue // it has ended meanwhile: its id may be reused
		}
		seen := slices.DeleteFunc(slices.Clone(tree.seen), func(p job.Process) bool { return !same(p) })
		for _, process := range below[tree.runner.PID] {
			seen = add(seen, process.PID)
		}
		t.remember(tree.mark, seen)
	}
	return err
}

// RunnerIsGone reports whether the runner of a job is known to have ended.
func (t *Trees) RunnerIsGone(name string) bool {
	t.mu.Lock()
	runner := t.known[name].runner
	t.mu.Unlock()
	return runner.PID > 0 && runner.Identity != "" && !same(runner)
}

// remember stores the seen processes of a run that is still known.
func (t *Trees) remember(mark Mark, seen []job.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.known[mark.Job]; ok && now.mark.Token == mark.Token {
		now.seen = seen
		t.known[mark.Job] = now
	}
}

// Seen returns the processes that Record found below the runner of a job.
func (t *Trees) Seen(name string) []job.Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.known[name].seen)
}

// Forget removes a job without running processes.
func (t *Trees) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

// maxDepth bounds the walk through the ancestors: a long chain of processes does
// not escape from a job.
const maxDepth = 4096

// JobOf returns the name of the job that a process belongs to, or "". It fails with
// [proc.ErrGone] if the process has ended or its id was reused, and with
// [ErrLowered] if it may have hidden a job's resource limit. The caller must refuse
// the process then.
func (t *Trees) JobOf(process job.Process) (string, error) {
	trees := t.all()
	if process.PID <= 0 {
		return "", nil
	}
	if len(trees) == 0 {
		return "", t.checkLimit(process)
	}
	above, err := proc.Chain(process.PID, maxDepth)
	chain := []int{process.PID}
	for _, ancestor := range above {
		chain = append(chain, ancestor.PID)
	}
	for _, tells := range []func(tree, []int) bool{tree.has, tree.marks} { // a mark may belong to another job
		for _, tree := range trees {
			if tells(tree, chain) {
				return tree.mark.Job, nil
			}
		}
	}
	if err != nil {
		return "", err // its ancestors are unknown
	}
	// Checked last: until then the id belonged to that process.
	if !proc.Alive(process.PID) || process.Identity != "" && !same(process) {
		return "", fmt.Errorf("process %d: %w", process.PID, proc.ErrGone)
	}
	return "", t.checkLimit(process)
}

// ErrLowered reports a process with a lower RLIMIT_LOCKS than Bridge itself.
var ErrLowered = errors.New("its limit of file locks (ulimit -x) is lower than Bridge's own")

// checkLimit fails with [ErrLowered] if a job has run and the process may be left
// from it: a job can lower its resource limit but never raise it.
func (t *Trees) checkLimit(process job.Process) error {
	t.mu.Lock()
	hasRun := t.known != nil
	t.mu.Unlock()
	if hasRun && hasLowered(process.PID) {
		return fmt.Errorf("process %d: %w", process.PID, ErrLowered)
	}
	return nil
}

// The reasons why JobOfConn refuses a connection.
var (
	// ErrOtherUser reports a connection of another user of this computer.
	ErrOtherUser = errors.New("the connection is another user's")
	// ErrNoHolder reports a connection that no known process has open.
	ErrNoHolder = errors.New("no process has the connection open")
	// ErrManyHolders reports a connection that several processes have open.
	ErrManyHolders = errors.New("more than one process has the connection open")
)

const (
	// holderLooks is how often the processes with an open connection are searched.
	// A program that starts another shares its descriptors for some milliseconds.
	holderLooks = 8
	// holderPause is the time between two searches.
	holderPause = 15 * time.Millisecond
)

// SameUser fails with [ErrOtherUser] if another user owns the other end of a local
// TCP connection. It accepts the superuser, who can do everything anyway. known
// means that the system reports this very user.
func SameUser(conn net.Conn) (known bool, err error) {
	peer, err := peerOf(conn)
	me := os.Geteuid()
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // the system does not tell, or nobody is there to read the answer
	case peer.user == me:
		return true, nil
	case peer.user == 0:
		return false, nil
	}
	return false, fmt.Errorf("%w: the caller is user %d, this home belongs to user %d", ErrOtherUser, peer.user, me)
}

// JobOfConn returns the name of the job at the other end of a local TCP connection,
// or "". While a job runs, it fails with [ErrNoHolder] or [ErrManyHolders] unless
// exactly one process of this user has the connection open (SEC-01). It returns ""
// if the system does not report the owner of a connection.
func (t *Trees) JobOfConn(conn net.Conn) (string, error) {
	if len(t.all()) == 0 {
		return "", nil
	}
	peer, err := peerOf(conn)
	if errors.Is(err, errors.ErrUnsupported) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if peer.user == 0 && os.Geteuid() != 0 {
		return "", nil // a job has no process of the superuser, and this process may not inspect those
	}
	return t.jobOfSocket(peer)
}

// jobOfSocket returns the job of the process that has a socket open.
func (t *Trees) jobOfSocket(peer socket) (string, error) {
	for look := 1; ; look++ {
		pids, err := holdersOf(peer)
		if err != nil {
			return "", err
		}
		for _, pid := range pids {
			if name := t.drivenBy(pid); name != "" { // a runner connects only for its job
				return name, nil
			}
			if name, err := t.JobOf(job.Process{PID: pid}); name != "" || err != nil && len(pids) == 1 {
				return name, err
			}
		}
		switch {
		case len(pids) == 1 && peer.isHeldBy(pids[0]): // the same process before and after its ancestors were read
			return "", nil
		case look < holderLooks:
			<-time.After(holderPause)
		case len(pids) > 1:
			return "", ErrManyHolders
		default:
			return "", ErrNoHolder
		}
	}
}

// drivenBy returns the job whose runner is the process, or "".
func (t *Trees) drivenBy(pid int) string {
	for _, known := range t.all() {
		if isStill(known.runner, pid) {
			return known.mark.Job
		}
	}
	return ""
}

func (t *Trees) all() []tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]tree, 0, len(t.known))
	for _, tree := range t.known {
		all = append(all, tree)
	}
	return all
}

// isStill reports whether the process with that id is the recorded one, as far as
// its identity was recorded.
func isStill(noted job.Process, pid int) bool {
	return noted.PID == pid && (noted.Identity == "" || same(noted))
}

// has reports whether the first process of chain, followed by its ancestors, is in
// the tree.
func (t tree) has(chain []int) bool {
	for i, pid := range chain {
		is := func(process job.Process) bool { return isStill(process, pid) }
		if i > 0 && is(t.runner) || slices.ContainsFunc(t.agents, is) || slices.ContainsFunc(t.seen, is) {
			return true
		}
	}
	return false
}

// marks reports whether a process of chain has the job's mark or is in its control group.
func (t tree) marks(chain []int) bool {
	return slices.ContainsFunc(chain, func(pid int) bool { return isInCgroup(pid, t.mark) || carries(pid, t.mark) })
}
