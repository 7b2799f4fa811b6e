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
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/jobs/landing"
	"bridge/backend/jobs/paired"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/sandbox"
)

// Options says what the jobs work with. All fields are required but Transcripts, Git, Agents, CheckFolder, Rules, Hold and Pace.
type Options struct {
	Home config.Home
	// Settings is what the owner says of jobs, read anew at each use.
	Settings func() (config.Jobs, error)
	Broker   Broker
	// Transcripts keeps what was said; nil keeps it in the runs' own files alone.
	Transcripts jobfiles.Transcripts
	// ArchiveAge is how old an ended job goes to the archive; 0 is no age.
	ArchiveAge time.Duration
	// Start starts the runner of the job whose folder that is, apart from this
	// process, and returns its process id.
	Start func(folder string) (pid int, err error)
	Git   *gitwork.Git // nil where this PC has none: then there are no worktrees and no diffs
	// Agents are those of this PC; nil knows none, and refuses nothing.
	Agents Agents
	// CheckFolder refuses folders in which no job may write (SEC-09); nil asks Home.
	CheckFolder func(folder string) error
	// Rules are the owner's standing rules; nil asks everything.
	Rules Rules
	// Hold says that older programs are alive that keep jobs.json too: it stays as it
	// is, and what is written waits beside it (VER-05).
	Hold bool
	Now  func() time.Time
	Log  *slog.Logger
	Pace Pace
}

// Agents is what jobs ask of the agent CLIs of this PC, which answer for themselves.
type Agents interface {
	// Check refuses, in one sentence, what they cannot do: one that is not there, a
	// model that it does not know.
	Check(ctx context.Context, request job.Request) error
	// Models and Usage tell what the CLIs tell, of one kind or, for "", of all.
	Models(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error)
	Usage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error)
	// KeptUsage is what they told last, without asking any.
	KeptUsage() []api.AgentUsage
}

// Broker is what jobs ask of the broker.
type Broker interface {
	// Asker finds the session on whose behalf a connection asks.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// JobOf names the job that a connection speaks for, "" for none.
	JobOf(conn *ipc.Conn) string
	// Live finds the connected session of that very name or id, which is no job's own.
	Live(name string) (bridge.Address, error)
	// GiveOn gives a message that nobody has read to the session with that peer id, and
	// reports whether there is such a message.
	GiveOn(ctx context.Context, messageID, peerID string) (known bool, err error)
	// Deliver stores a message durably for the session with that peer id, once however
	// often it is asked. One that another session has, and has not read, goes on to this
	// one.
	Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error
	// Changed tells everyone who watches.
	Changed()
}

// Pace is how often what cannot tell of itself is looked at, and how long a runner
// may take to be heard of after a broker's death in the moment of its start. Reclaim
// is how often worktrees are.
type Pace struct {
	Look, Grace, Reclaim time.Duration
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
	*standing
	*views

	looking sync.Mutex // held by a look: one at a time
	rest    bool       // something of an archived job may be in its old place; under looking
}

// core is what the parts share: the registry and what goes with its jobs, and the
// parts themselves. Each part has a file by its noun.
type core struct {
	opts  Options
	files jobfiles.Files
	began time.Time
	ready lifecycle.Signal      // somebody may be able to start
	shown atomic.Pointer[shown] // for those who only read
	heard jobfiles.Heard
	parts
	// checkName refuses a name for which jobs.json has more than one job.
	checkName func(name string) error

	mu       sync.Mutex // guards the registry and what goes with its jobs; held while jobs.json is written
	registry jobfiles.Registry
	file     job.File
	book     *job.Registry
	limits   job.Limits     // as the owner said last
	slots    map[string]int // as sessions set them, by peer id
	dirty    bool           // something stands in the registry that is not in the file
	runs     map[string]*run
	bound    map[*ipc.Conn]*run
	trees    sandbox.Trees // whose a process is

	keeping sync.Mutex // held while a transcript is taken in

	tasks *lifecycle.Tasks
}

type parts struct {
	starts    *starts               // gives slots, starts runners
	results   *results              // what came of runs, also of those whose runner is gone
	runners   *runners              // what runners report and are told
	approvals *approvals            // what jobs ask before they go on
	standing  *standing             // what the owner's standing rules answer
	asks      *asks                 // what supervisors ask for
	views     *views                // what is shown of all this
	landings  *landing.Repositories // the repositories of jobs, and what the owner does with their work
	said      *transcripts          // what was said in runs
	away      *paired.Jobs          // jobs that paired PCs do
}

// Open reads the book. Run begins the work.
func Open(opts Options) (*Jobs, error) {
	if opts.Pace.Look == 0 {
		opts.Pace.Look = usualLook
	}
	if opts.Pace.Grace == 0 {
		opts.Pace.Grace = usualGrace
	}
	if opts.CheckFolder == nil {
		opts.CheckFolder = config.ReservedFolders(opts.Home, os.Getenv).Check
	}
	c := &core{
		opts: opts, files: jobfiles.Files{Home: opts.Home.Dir(), Archive: opts.Home.ArchiveDir()}, began: opts.Now(), ready: lifecycle.NewSignal(), slots: map[string]int{},
		runs: map[string]*run{}, bound: map[*ipc.Conn]*run{},
		registry: jobfiles.Registry{
			Path: filepath.Join(opts.Home.Dir(), "jobs.json"), Pending: opts.Home.PendingJobWrites(),
			Kept: filepath.Join(opts.Home.ArchiveDir(), "pending-job-writes"), Hold: opts.Hold,
		},
	}
	c.parts = parts{starts: &starts{c}, results: &results{c}, runners: &runners{c}, approvals: &approvals{c}, standing: &standing{c}, asks: &asks{core: c}, views: &views{core: c}, said: &transcripts{c}}
	c.tasks = lifecycle.NewTasks(context.Background())
	c.landings, c.away = newLandings(c), newAway(c)
	j := &Jobs{core: c, asks: c.asks, runners: c.runners, approvals: c.approvals, standing: c.standing, views: c.views, rest: true}
	if err := j.read(); err != nil {
		return nil, err
	}
	for _, one := range j.book.All() {
		if one.Mirror == nil && (one.State.IsActive() || one.IsUnsent()) {
			j.reopen(one)
		}
	}
	if err := c.approvals.load(); err != nil {
		return nil, err
	}
	c.standing.takeUp()
	j.publish()
	return j, nil
}

// Run takes up what an earlier broker left, and goes on until Close.
func (j *Jobs) Run() {
	j.tasks.Go(j.starts.loop)
	j.tasks.Go(j.tellHandoffs)
	j.tasks.Go(j.lookLoop)
	j.tasks.Go(func() { j.landings.Run(j.tasks.Context()) })
	j.tasks.Go(j.said.keepAll)
	j.kick()
}

// Close ends what the jobs do by themselves. Runners go on; a finish comes to its end.
func (j *Jobs) Close() {
	j.tasks.Stop()
	j.landings.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty {
		j.logged("save the registry", j.writeLocked())
	}
}

// kick has the line looked at.
func (j *core) kick() {
	j.ready.Notify()
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
		case <-j.tasks.Done():
			return
		}
	}
}

func (j *Jobs) look() {
	j.looking.Lock()
	defer j.looking.Unlock()
	j.logged("look at the processes of jobs", j.trees.Look())
	for _, one := range j.all() {
		switch {
		case one.Mirror != nil: // its PC looks after it
		case one.State.IsActive():
			j.results.lookAtRunner(one)
		case one.IsUnsent():
			j.logged("send the result of "+one.Name, j.results.send(j.tasks.Context(), one.Name))
		case one.State == job.Limit:
			j.logged("continue "+one.Name, j.resume(one))
		}
	}
	j.logged("ask about an approval", j.put(j.tasks.Context()))
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
