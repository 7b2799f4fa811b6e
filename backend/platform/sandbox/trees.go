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

// Trees knows the processes of running jobs, and tells of any process whether it is
// part of one. What a process says of itself counts for nothing: it may leave the
// mark out of its environment, its session and its group. A process is a job's by its
// control group and its resource limit, by its ancestors, and because Look has seen it
// below the job's runner. Its zero value knows none.
type Trees struct {
	mu    sync.Mutex // guards known
	known map[string]tree
}

// tree is what is known of one job.
type tree struct {
	mark   Mark
	runner job.Process   // all below it are the job's; itself it is not
	agents []job.Process // they and all below them are, also when the runner is gone
	seen   []job.Process // the same: what Look has found below the runner, and still runs
}

// Set says where the job of that mark runs.
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

// Look remembers every process that runs below the runner of a job, by its number and its
// start: it is the job's also when its runner has died (SEC-08).
func (t *Trees) Look() error {
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
			continue // it has ended meanwhile: its number may be another's
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

// remember sets what was seen of a run that is still known.
func (t *Trees) remember(mark Mark, seen []job.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.known[mark.Job]; ok && now.mark.Token == mark.Token {
		now.seen = seen
		t.known[mark.Job] = now
	}
}

// Seen returns what Look has found below the runner of a job.
func (t *Trees) Seen(name string) []job.Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.known[name].seen)
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

// JobOf returns the name of the job that a process is part of, "" for none. It fails
// with [proc.ErrGone] when the process has ended, or its number was given to another
// one, and with [ErrLowered] when it may have hidden a job's resource limit: nobody can
// tell then, so the caller must refuse it.
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
	for _, tells := range []func(tree, []int) bool{tree.has, tree.marks} { // a mark may be another's
		for _, one := range trees {
			if tells(one, chain) {
				return one.mark.Job, nil
			}
		}
	}
	if err != nil {
		return "", err // what is above it is not known
	}
	// Looked at last: until then the number was that process's.
	if !proc.Alive(process.PID) || process.Identity != "" && !same(process) {
		return "", fmt.Errorf("process %d: %w", process.PID, proc.ErrGone)
	}
	return "", t.checkLimit(process)
}

// ErrLowered reports a process with a lower RLIMIT_LOCKS than Bridge itself has.
var ErrLowered = errors.New("its limit of file locks (ulimit -x) is lower than Bridge's own")

// checkLimit fails with [ErrLowered] when a job has run and the process may be what it
// left: a job may lower its resource limit, and never raise it.
func (t *Trees) checkLimit(process job.Process) error {
	t.mu.Lock()
	hasRun := t.known != nil
	t.mu.Unlock()
	if hasRun && hasLowered(process.PID) {
		return fmt.Errorf("process %d: %w", process.PID, ErrLowered)
	}
	return nil
}

// Why JobOfConn refuses a connection.
var (
	// ErrOtherUser reports a connection of another user of this computer.
	ErrOtherUser = errors.New("the connection is another user's")
	// ErrNoHolder reports a connection that no process is known to have open.
	ErrNoHolder = errors.New("no process has the connection open")
	// ErrManyHolders reports a connection that several processes have open.
	ErrManyHolders = errors.New("more than one process has the connection open")
)

const (
	// holderLooks is how often the processes that have a connection open are looked for. A
	// program that just starts another one shares its descriptors for some milliseconds.
	holderLooks = 8
	// holderPause is the time between two looks.
	holderPause = 15 * time.Millisecond
)

// SameUser fails with [ErrOtherUser] when the process at the other end of a TCP
// connection of this computer is another user's, the superuser excepted, who can do
// everything anyway. known reports that the system says it is this very user's.
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

// JobOfConn returns the name of the job at the other end of a TCP connection of this
// computer, "" for none. While a job runs it fails with [ErrNoHolder] or
// [ErrManyHolders] unless exactly one process of this user's has the connection open
// (SEC-01). Where the system does not tell whose a connection is, JobOfConn returns "".
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
		return "", nil // no process of a job's is the superuser's, and those are not for us to look into
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
			if name := t.drivenBy(pid); name != "" { // a runner connects for its job, and never for itself
				return name, nil
			}
			if name, err := t.JobOf(job.Process{PID: pid}); name != "" || err != nil && len(pids) == 1 {
				return name, err
			}
		}
		switch {
		case len(pids) == 1 && peer.isHeldBy(pids[0]): // it was that process whose ancestors were read
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

// drivenBy returns the job whose runner a process is, "" for none.
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
	for _, one := range t.known {
		all = append(all, one)
	}
	return all
}

// isStill reports whether the process of that number is the one that was noted, as far as
// its identity was.
func isStill(noted job.Process, pid int) bool {
	return noted.PID == pid && (noted.Identity == "" || same(noted))
}

// has reports whether the process that chain begins with, its ancestors behind it,
// stands in the tree.
func (t tree) has(chain []int) bool {
	for i, pid := range chain {
		is := func(process job.Process) bool { return isStill(process, pid) }
		if i > 0 && is(t.runner) || slices.ContainsFunc(t.agents, is) || slices.ContainsFunc(t.seen, is) {
			return true
		}
	}
	return false
}

// marks reports whether one of them carries the job's mark, or is in its control group.
func (t tree) marks(chain []int) bool {
	return slices.ContainsFunc(chain, func(pid int) bool { return isInCgroup(pid, t.mark) || carries(pid, t.mark) })
}
