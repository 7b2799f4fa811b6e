// Package jobs keeps the delegated jobs of one home, in the broker's process. It
// records each job durably, assigns slots, and starts a runner for each run. It records
// what runners report, sends results as mail, and forwards orders of supervisors and
// the owner. It drives no agent CLI: the runner does, in a separate process that
// survives the broker. Package job has the rules.
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

// Options configures the jobs. Optional: Transcripts, Git, Agents, CheckFolder, Rules, Hold, Timing.
type Options struct {
	Home config.Home
	// Settings returns the owner's settings for jobs; each use reads them again.
	Settings func() (config.Jobs, error)
	Broker   Broker
	// Transcripts stores the transcripts; if nil, only the runs' own files have them.
	Transcripts jobfiles.Transcripts
	// ArchiveAge is the age at which an ended job goes to the archive; 0 means no age.
	ArchiveAge time.Duration
	// Start starts the runner of the job in that folder as a separate process, and
	// returns its process id.
	Start func(folder string) (pid int, err error)
	Git   *gitwork.Git // nil if this PC has no Git: then there are no worktrees and no diffs
	// Agents are the agents of this PC; nil knows no agents and refuses nothing.
	Agents Agents
	// CheckFolder refuses folders in which no job may write (SEC-09); nil uses Home.
	CheckFolder func(folder string) error
	// Rules are the owner's standing rules; if nil, every approval is asked.
	Rules Rules
	// Hold reports that older programs are alive that use jobs.json too. Then jobs.json
	// stays unchanged, and writes wait in separate files (VER-05).
	Hold   bool
	Now    func() time.Time
	Log    *slog.Logger
	Timing Timing
}

// Agents is the interface to the agent CLIs of this PC.
type Agents interface {
	// Check refuses a request that the agent CLI cannot run: a missing CLI, an unknown
	// model. The error is one sentence.
	Check(ctx context.Context, request job.Request) error
	// Models and Usage return the answers of the CLIs of one kind, or of all for "".
	Models(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error)
	Usage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error)
	// CachedUsage returns the last known usage without a request to any CLI.
	CachedUsage() []api.AgentUsage
}

// Broker is the part of the broker that jobs use.
type Broker interface {
	// Asker returns the session on whose behalf a connection makes requests.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// JobOf returns the job that a connection belongs to, "" for none.
	JobOf(conn *ipc.Conn) string
	// Live returns the connected session with exactly that name or id that belongs to no job.
	Live(name string) (bridge.Address, error)
	// GiveOn forwards an unread message to the session with that peer id, and reports
	// whether such a message exists.
	GiveOn(ctx context.Context, messageID, peerID string) (known bool, err error)
	// Deliver stores a message durably for the session with that peer id, only once for
	// any number of calls. If another session has the message unread, Deliver moves it
	// to this session.
	Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error
	// Changed notifies all subscribers.
	Changed()
}

// Timing sets the intervals: PollInterval between polls of runners, Reclaim between clean-ups of
// worktrees. Grace is how long a runner may take to report if a broker died during the
// runner's start.
type Timing struct {
	PollInterval, Grace, Reclaim time.Duration
}

const (
	usualLook  = 2 * time.Second
	usualGrace = time.Minute
)

// Jobs is the set of delegated jobs of one home.
type Jobs struct {
	*core
	*supervision
	*runners
	*approvals
	*standingRules
	*views

	looking sync.Mutex // held during a poll: one at a time
	rest    bool       // files of an archived job may remain in their old place; guarded by looking
}

// core is the state that the parts share: the registry, its data and the parts. The
// file of each part has the part's name.
type core struct {
	opts       Options
	files      jobfiles.Files
	began      time.Time
	ready      lifecycle.Signal      // a queued job may be able to start
	published  atomic.Pointer[shown] // for readers
	deliveries jobfiles.Deliveries
	parts
	// checkName refuses a name that more than one job in jobs.json has.
	checkName func(name string) error

	mu       sync.Mutex // guards the registry and its related data; held while jobs.json is written
	registry jobfiles.Registry
	file     job.File
	book     *job.Registry
	limits   job.Limits     // from the last settings
	slots    map[string]int // the limits that sessions set, by peer id
	dirty    bool           // the registry has changes that are not in the file
	runs     map[string]*run
	bound    map[*ipc.Conn]*run
	trees    sandbox.Trees // the processes of each job

	keeping sync.Mutex // held while a transcript is stored

	tasks *lifecycle.Tasks
}

type parts struct {
	scheduler     *scheduler            // assigns slots, starts runners
	results       *results              // the results of runs, also of those whose runner is gone
	runners       *runners              // the reports of runners and their orders
	approvals     *approvals            // the approvals that jobs request
	standingRules *standingRules        // the answers of the owner's standing rules
	supervision   *supervision          // the operations for supervisors
	views         *views                // the views of jobs
	landings      *landing.Repositories // the repositories of jobs, and how the owner lands their work
	transcripts   *transcripts          // the transcripts of runs
	paired        *paired.Jobs          // jobs that paired PCs run
}

// Open reads the registry. Run starts the background work. Open fails if jobs.json or the
// folder of approvals cannot be read.
func Open(opts Options) (*Jobs, error) {
	if opts.Timing.PollInterval == 0 {
		opts.Timing.PollInterval = usualLook
	}
	if opts.Timing.Grace == 0 {
		opts.Timing.Grace = usualGrace
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
	c.parts = parts{scheduler: &scheduler{c}, results: &results{c}, runners: &runners{c}, approvals: &approvals{c}, standingRules: &standingRules{c}, supervision: &supervision{core: c}, views: &views{core: c}, transcripts: &transcripts{c}}
	c.tasks = lifecycle.NewTasks(context.Background())
	c.landings, c.paired = newLandings(c), newPaired(c)
	j := &Jobs{core: c, supervision: c.supervision, runners: c.runners, approvals: c.approvals, standingRules: c.standingRules, views: c.views, rest: true}
	if err := j.read(); err != nil {
		return nil, err
	}
	for _, entry := range j.book.All() {
		if entry.Mirror == nil && (entry.State.IsActive() || entry.IsUnsent()) {
			j.reopen(entry)
		}
	}
	if err := c.approvals.load(); err != nil {
		return nil, err
	}
	c.standingRules.withdrawRevoked()
	j.publish()
	return j, nil
}

// Run resumes the work of an earlier broker in background tasks that end at Close.
func (j *Jobs) Run() {
	j.tasks.Go(j.scheduler.loop)
	j.tasks.Go(j.sendHandoffs)
	j.tasks.Go(j.pollLoop)
	j.tasks.Go(func() { j.landings.Run(j.tasks.Context()) })
	j.tasks.Go(j.transcripts.storeAll)
	j.notifyScheduler()
}

// Close stops the tasks and saves the registry. Runners and a begun finish continue.
func (j *Jobs) Close() {
	j.tasks.Stop()
	j.landings.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty {
		j.logged("save the registry", j.writeLocked())
	}
}

// notifyScheduler wakes the scheduler to re-examine the queue.
func (j *core) notifyScheduler() {
	j.ready.Notify()
}

// pollLoop polls for events that send no notification: runners that are gone, and
// results that could not be sent.
func (j *Jobs) pollLoop() {
	tick := time.NewTicker(j.opts.Timing.PollInterval)
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
	j.logged("look at the processes of jobs", j.trees.Record())
	for _, entry := range j.all() {
		switch {
		case entry.Mirror != nil: // its PC supervises it
		case entry.State.IsActive():
			j.results.checkRunner(entry)
		case entry.IsUnsent():
			j.logged("send the result of "+entry.Name, j.results.send(j.tasks.Context(), entry.Name))
		case entry.State == job.Limit:
			j.logged("continue "+entry.Name, j.resume(entry))
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

// logged logs an error that no caller waits for, except a cancel.
func (j *core) logged(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		j.opts.Log.Error("jobs: could not "+what, "err", err)
	}
}
