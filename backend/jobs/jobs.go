// Package jobs keeps the delegated jobs of one home, in the broker's process: it
// records each durably, gives slots, starts a runner for each and takes what it
// reports, sends results as ordinary mail, and carries the word of supervisors and
// owner to jobs and their approvals. It drives no agent CLI: that is the runner's,
// a process of its own that goes on without a broker. The rules are those of job.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/broker"
	"bridge/backend/config"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
)

// Options says what the jobs work with. All fields are required but Hold and Pace.
type Options struct {
	Home   config.Home
	Limits job.Limits
	Broker Broker
	// Start starts the runner of the job whose folder that is, apart from this
	// process, and returns its process id.
	Start func(folder string) (pid int, err error)
	// Hold says that older programs are alive that keep jobs.json too: it stays as
	// it is, and no job is taken in (VER-05).
	Hold bool
	Now  func() time.Time
	Log  *slog.Logger
	Pace Pace
}

// Broker is what jobs ask of the broker.
type Broker interface {
	// Asker finds the session on whose behalf a connection asks.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// Deliver stores a message durably for the session with that peer id, once however
	// often it is asked.
	Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error
	// Changed tells everyone who watches.
	Changed()
}

// Pace is how often what cannot tell of itself is looked at, and how long a runner
// may take to be heard of after a broker's death in the moment of its start.
type Pace struct {
	Look, Grace time.Duration
}

const (
	usualLook  = 2 * time.Second
	usualGrace = time.Minute
)

// Jobs are the delegated jobs of one home.
type Jobs struct {
	*core
	*asks
	*runners
	*approvals
	*views
}

// core is what the parts share: the registry and what goes with its jobs, and the
// parts themselves. Each part has a file by its noun.
type core struct {
	opts  Options
	began time.Time
	ready chan struct{}             // capacity 1: somebody may be able to start
	shown atomic.Pointer[[]job.Job] // for those who only read
	parts

	mu    sync.Mutex // guards the registry and what goes with its jobs; held while jobs.json is written
	file  job.File
	book  *job.Registry
	slots map[string]int // as sessions set them, by peer id
	dirty bool           // something stands in the registry that is not in the file
	runs  map[string]*run
	bound map[*ipc.Conn]*run

	tasks  sync.WaitGroup
	life   context.Context //nolint:containedctx // of what the jobs do by themselves
	cancel context.CancelFunc
}

type parts struct {
	starts    *starts    // gives slots, starts runners
	results   *results   // what came of runs, also of those whose runner is gone
	runners   *runners   // what runners report and are told
	approvals *approvals // what jobs ask before they go on
	asks      *asks      // what supervisors ask for
	views     *views     // what is shown of all this
}

// Open reads the book. Run begins the work.
func Open(opts Options) (*Jobs, error) {
	if opts.Pace.Look == 0 {
		opts.Pace.Look = usualLook
	}
	if opts.Pace.Grace == 0 {
		opts.Pace.Grace = usualGrace
	}
	c := &core{
		opts: opts, began: opts.Now(), ready: make(chan struct{}, 1), slots: map[string]int{},
		runs: map[string]*run{}, bound: map[*ipc.Conn]*run{},
	}
	c.parts = parts{starts: &starts{c}, results: &results{c}, runners: &runners{c}, approvals: &approvals{c}, asks: &asks{core: c}, views: &views{c}}
	c.asks.operations = c.asks.index()
	c.life, c.cancel = context.WithCancel(context.Background())
	j := &Jobs{core: c, asks: c.asks, runners: c.runners, approvals: c.approvals, views: c.views}
	if err := j.read(); err != nil {
		return nil, err
	}
	for _, one := range j.book.All() {
		if one.State.IsActive() || one.State.IsEnded() && one.Run > 0 && !one.ResultSent {
			if err := j.reopen(one); err != nil {
				return nil, err
			}
		}
	}
	if err := c.approvals.load(); err != nil {
		return nil, err
	}
	j.publish()
	return j, nil
}

// Run takes up what an earlier broker left, and goes on until Close.
func (j *Jobs) Run() {
	j.tasks.Go(j.starts.loop)
	j.tasks.Go(j.lookLoop)
	j.kick()
}

// Close ends what the jobs do by themselves. Runners go on.
func (j *Jobs) Close() {
	j.cancel()
	j.tasks.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty {
		j.logged("save the registry", j.writeLocked())
	}
}

// kick has the line looked at.
func (j *core) kick() {
	select {
	case j.ready <- struct{}{}:
	default:
	}
}

// lookLoop looks after what tells nothing of itself: runners that are gone, and
// results that could not be sent.
func (j *Jobs) lookLoop() {
	tick := time.NewTicker(j.opts.Pace.Look)
	defer tick.Stop()
	for {
		j.look()
		select {
		case <-tick.C:
		case <-j.life.Done():
			return
		}
	}
}

func (j *Jobs) look() {
	for _, one := range j.all() {
		switch {
		case one.State.IsActive():
			j.results.lookAtRunner(one)
		case one.State.IsEnded() && one.Run > 0 && !one.ResultSent:
			j.logged("send the result of "+one.Name, j.results.send(j.life, one.Name))
		}
	}
	j.logged("move ended jobs to the archive", j.archive())
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty {
		j.logged("save the registry", j.writeLocked())
	}
}

// logged says what nobody waits for.
func (j *core) logged(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		j.opts.Log.Error("jobs: could not "+what, "err", err)
	}
}
