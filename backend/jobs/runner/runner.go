// Package runner drives one delegated job, from the spec that the broker wrote to
// the envelope that the broker reads. It is one process of its own a run: it holds
// the pipes of the agent's CLI, so it depends on nobody. Without a broker it goes on,
// keeps its own files, and tells its news to whichever broker is there.
//
// What must not be lost is in its journal, synced, before it is acted on; what came
// of the run is whole in the envelope before anybody hears of it. It also makes the
// worktree of a job, parks what is left in it, and collects what it sees itself as
// evidence. At its end no process of the job is left.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// Options are what a run needs from outside.
type Options struct {
	Folder    string // jobs/<name> of the home, absolute
	Logs      string // runs of the home
	Approvals string // approvals of the home
	Worktrees string // where the checkouts of worktree jobs are made
	// Driver finds the driver of a kind.
	Driver func(bridge.AgentKind) (job.Driver, error)
	// CheckFolder refuses folders in which no job may write (SEC-09).
	CheckFolder func(folder string) error
	// Fit adds what the owner's config and this PC say: the CLI, its environment, the
	// MCP server and the floor.
	Fit func(job.Spec) (job.Spec, error)
	// Writable are folders besides its own in which a job of this PC that may edit can write.
	Writable []string
	Git      *gitwork.Git // nil where this PC has none
	SetUp    []string     // the owner's command that makes a new worktree ready; may be empty
	// Broker waits for a connection to whichever broker is there.
	Broker func(context.Context) (Broker, error)
	// Patience is for how long the result is offered where no broker takes it. The
	// envelope stays for the next one.
	Patience time.Duration
	Now      func() time.Time
	Log      *slog.Logger
	// MaxProcesses bounds the processes and threads of the run where it has a control group
	// with that bound; 0 sets none.
	MaxProcesses int
	// ScopesSignals reports whether the sandbox keeps a job from signalling processes
	// outside; nil is as this kernel says.
	ScopesSignals func() bool
	// MaxLogBytes bounds what the run writes into its log, and into its transcript; 0: 1 GiB.
	MaxLogBytes int64
	LookEvery   time.Duration // at the home, whether it is still there; 0: every 10 s
	// At is told each step of a run as it is reached; nil for nobody.
	At func(Step)
}

// Step names a moment of a run after which another part of the truth is durable.
type Step string

// The steps, in their order; those of questions and messages come as often as there
// are any.
const (
	StepClaimed   Step = "claimed"   // nobody else begins this run
	StepPlaced    Step = "placed"    // the worktree is there, not yet written down
	StepPrompted  Step = "prompted"  // the prompt is in the journal, nothing was said
	StepStarted   Step = "started"   // the CLI runs, its processes are not written down
	StepSpawned   Step = "spawned"   // they are
	StepAsked     Step = "asked"     // a question is durable
	StepAnswered  Step = "answered"  // its answer is, and was not handed on
	StepHanded    Step = "handed"    // the CLI has taken it
	StepNoted     Step = "noted"     // a message is in the journal, and was not handed on
	StepSent      Step = "sent"      // the CLI has taken it
	StepEnded     Step = "ended"     // the CLI has ended
	StepReaped    Step = "reaped"    // and all that it left behind
	StepParked    Step = "parked"    // the worktree's work is on its branch
	StepConcluded Step = "concluded" // the envelope is durable, nobody has heard of it
	StepDelivered Step = "delivered" // the broker has it
)

// runner is one run of a job.
type runner struct {
	Options
	files files
	spec  runs.SpecFile
	state runs.StateFile
	tell  *reporter
	log   *runLog
	said  *transcript
	place place
	mark  sandbox.Mark // of the run's processes
	claim *disk.FileLock
	// made is the worktree that this run made; madeNew says that its branch is new, too.
	made    *job.Worktree
	madeNew bool
	tried   bool // the agent's CLI may have been started
}

// Run drives the run that the folder's spec asks for, and returns when its result
// was taken. A run is begun once: one that was begun before and is not over is
// Conflict, and what a dead runner left of it is ended. One that is over is only told
// again. When ctx ends the agent is ended and its work kept, without a result: the
// job was interrupted and can be continued. So it is when the home is gone.
func Run(ctx context.Context, o Options) (err error) {
	r := &runner{Options: o, files: files(o.Folder)}
	if r.spec, err = r.files.spec(); err != nil {
		return err
	}
	ctx, left := whileAtHome(ctx, o.Folder, cmp.Or(o.LookEvery, lookEvery))
	defer left()
	defer func() { err = errors.Join(err, r.claim.Release()) }()
	r.tell = newReporter(o.Broker, r.spec)
	ending, stop := context.WithCancel(context.WithoutCancel(ctx)) // a run that is told to end still tells that
	defer stop()
	result, err := r.files.result(r.spec.Run)
	if err != nil {
		return err
	}
	if result == nil {
		if result, err = r.carryOut(ctx, ending); err != nil {
			return err
		}
	} else {
		r.state = runs.StateFile{Job: r.spec.Job, Run: r.spec.Run, State: result.State}
		r.tell.start(ending, r.state)
	}
	r.deliver(ctx, result)
	stop()
	r.tell.wait()
	return nil
}

// carryOut does the work of the run and returns its durable result.
func (r *runner) carryOut(ctx, ending context.Context) (_ *api.RunnerResult, err error) {
	if err := r.claimRun(ending); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveCgroup(r.mark)) }() // reap has, unless it was not reached
	if r.log, err = openLog(r.Logs, r.spec.Job, r.MaxLogBytes); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.log.close()) }()
	if r.said, err = openTranscript(r.Logs, r.spec.Job); err != nil {
		return nil, err
	}
	defer func() { // after the result: a disk that took nothing may do again
		if err := r.said.close(); err != nil {
			r.Log.Warn("the transcript of the job may not be durable", "job", r.spec.Job, "err", err)
		}
	}()
	r.said.room = newRoom(r.MaxLogBytes)
	r.tell.start(ending, r.state)
	started := r.Now()
	d := newDrive(r, started)
	if err := d.begin(ctx); err != nil {
		r.log.line("! " + err.Error())
		if d.dying = ctx.Err() != nil; !d.dying {
			d.last = &job.TurnEnded{Why: job.EndedNotStarted, Message: err.Error()}
		}
	} else {
		d.loop(ctx)
		d.over()
	}
	_ = r.said.flush() // what failed is tried again, and told, when it is closed
	r.at(StepEnded)
	if err := r.reap(ending); err != nil {
		r.Log.Error("processes of the job are left", "job", r.spec.Job, "err", err)
	} else if err := run.DropCaches(r.Folder); err != nil {
		r.Log.Warn("caches of the job are left", "job", r.spec.Job, "err", err)
	}
	r.at(StepReaped)
	if d.run == nil && !d.dying {
		r.withdraw(ending)
	}
	seen := r.conclude(ending, &d.saw)
	r.at(StepParked)
	if d.wasInterrupted() {
		r.state.State, r.state.Wait, r.state.Processes = job.Interrupted, nil, nil
		return nil, errors.Join(context.Cause(ctx), r.save())
	}
	seen.Tokens, seen.CostUSD, seen.DurationMs = r.state.Tokens, r.state.CostUSD, r.Now().Sub(started).Milliseconds()
	return r.close(ctx, d, seen)
}

// conserve writes the envelope. What came of the run is nowhere else, so a disk that
// fails is tried again until it takes it, or nobody would want it any more.
func (r *runner) conserve(ctx context.Context, envelope runs.Envelope) error {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.files.saveEnvelope(envelope)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.Log.Error("the result of the job could not be written so far", "job", r.spec.Job, "err", err)
		ipc.Pause(ctx, pause)
	}
}

// close makes the result durable: first the envelope, then the state.
func (r *runner) close(ctx context.Context, d *drive, seen runs.Evidence) (*api.RunnerResult, error) {
	end := d.ended()
	outcome := job.OutcomeOf(end, d.cancelled)
	envelope := runs.NewEnvelope(r.spec.Job, r.spec.Run, outcome, end.Text, seen, r.Now())
	envelope.Variables = d.variables
	envelope.Error, envelope.Title, envelope.Model, envelope.Session = end.Message, r.state.Title, r.state.Model, r.state.Session
	if w := r.state.Worktree; w.IsMade() {
		envelope.Branch, envelope.Workdir = w.Branch, w.Path
	}
	if err := r.conserve(ctx, envelope); err != nil {
		return nil, err
	}
	r.at(StepConcluded)
	r.state.State, r.state.Wait, r.state.Processes = outcome.State, nil, nil
	if err := r.save(); err != nil {
		r.Log.Warn("the state of the job could not be written; its envelope is there", "job", r.spec.Job, "err", err)
	}
	return r.files.result(r.spec.Run)
}

// claimRun makes this process the one that drives the run, and ends what an earlier
// run of the job has left behind.
func (r *runner) claimRun(ctx context.Context) error {
	found, err := Look(r.Folder)
	if err != nil {
		return err
	}
	if found.Alive && !found.claimed && found.State.Run < r.spec.Run {
		found.Alive = !hasLeft(ctx, r.Folder, found)
	}
	if found.Alive {
		return bridge.Errorf(bridge.Conflict, "%s is driven by process %d", r.spec.Job, found.driver.PID)
	}
	if err := found.End(ctx); err != nil {
		return err
	}
	identity, err := proc.Identity(os.Getpid())
	if err != nil {
		return fmt.Errorf("name this runner: %w", err)
	}
	self := job.Process{PID: os.Getpid(), Identity: identity, Role: "runner"}
	mark := sandbox.Mark{Job: r.spec.Job, Token: r.spec.Token}
	mark.Cgroup = sandbox.PlanCgroup(mark)
	// The path is written down before the group is there, so that none is forgotten.
	if r.claim, err = r.files.claim(r.spec.Run, orphans.Claim{Runner: self, Token: r.spec.Token, Cgroup: mark.Cgroup}); err != nil {
		return err
	}
	r.mark = mark
	if err := sandbox.MakeCgroup(mark, r.MaxProcesses); err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		r.Log.Info("the job has no control group of its own", "job", r.spec.Job, "err", err)
	}
	r.at(StepClaimed)
	r.state = runs.StateFile{Job: r.spec.Job, Run: r.spec.Run, State: job.Starting, Runner: self, Title: r.spec.Title, Model: r.spec.Model, Session: r.spec.Session}
	r.state.Worktree, r.state.Base, r.state.BaseTree, r.state.Checkout = found.State.Worktree, found.State.Base, found.State.BaseTree, found.State.Checkout
	return r.save()
}

// leaveTime is what the runner of an earlier run gets to leave: the broker has its
// result and began the next run at once.
const leaveTime = 30 * time.Second

// hasLeft waits for the end of the runner that was found.
func hasLeft(ctx context.Context, folder string, found Found) bool {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for orphans.Drives(folder, found.State.Run, found.driver) {
		if !ipc.Pause(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return true
}

// reapTime is what the end of everything that a job left behind may take.
const reapTime = 30 * time.Second

// reap ends whatever is left of the job.
func (r *runner) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	return sandbox.End(ctx, r.mark, r.state.Processes)
}

// deliver offers the result until a broker has it, or nobody will want it.
func (r *runner) deliver(ctx context.Context, result *api.RunnerResult) {
	r.tell.finish(result)
	timer := time.NewTimer(r.Patience)
	defer timer.Stop()
	for {
		select {
		case order := <-r.tell.orders:
			r.tell.outcome(api.OrderOutcome{ID: order.ID, Error: errEnded})
			continue
		case <-r.tell.taken:
			r.at(StepDelivered)
		case <-timer.C:
		case <-ctx.Done():
		}
		return
	}
}

// errEnded refuses an order that came after the agent's end.
var errEnded = bridge.Errorf(bridge.Unavailable, "the agent has ended: this is for its next run")

// save makes the state durable and tells it.
func (r *runner) save() error {
	r.state.UpdatedAt = r.moment()
	r.tell.setState(r.state)
	return r.files.saveState(r.state)
}

func (r *runner) moment() job.Millis { return job.Millis(r.Now().UnixMilli()) }

func (r *runner) at(step Step) {
	if r.At != nil {
		r.At(step)
	}
}
