// Package runner drives one delegated job, from the broker's spec to the envelope for
// the broker. Each run is a separate process that holds the pipes of the agent's CLI. So
// it depends on no broker: it continues alone, writes its files, and reports to the next
// broker.
//
// Essential data is synced to the journal before the runner acts on it. The result is
// complete in the envelope before the runner reports it. The runner also creates the
// job's worktree, parks its work, and collects evidence. At its end it leaves no process
// of the job.
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

// Options configures a run.
type Options struct {
	Folder    string // jobs/<name> of the home, absolute
	Logs      string // runs of the home
	Approvals string // approvals of the home
	Worktrees string // the folder for the checkouts of worktree jobs
	// Driver returns the driver of a kind.
	Driver func(bridge.AgentKind) (job.Driver, error)
	// CheckFolder refuses folders in which no job may write (SEC-09).
	CheckFolder func(folder string) error
	// Fit adds the settings of the owner's config and this PC: the CLI, its
	// environment, the MCP server and the floor.
	Fit func(job.Spec) (job.Spec, error)
	// Writable are further folders in which a job of this PC that may edit can write.
	Writable []string
	Git      *gitwork.Git // nil if this PC has no Git
	SetUp    []string     // the owner's command that prepares a new worktree; may be empty
	// Broker waits for a connection to the current broker.
	Broker func(context.Context) (Broker, error)
	// Timeout is how long the runner offers the result if no broker takes it. The
	// envelope stays for the next broker.
	Timeout time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	// MaxProcesses limits the run's processes and threads if its control group supports
	// that; 0 sets no limit.
	MaxProcesses int
	// ScopesSignals reports whether the sandbox keeps a job from signalling outside
	// processes; nil asks this kernel.
	ScopesSignals func() bool
	// MaxLogBytes limits the run's log and its transcript, each; 0: 1 GiB.
	MaxLogBytes int64
	LookEvery   time.Duration // interval of the checks that the home exists; 0: every 10 s
	// At receives each step of a run as it is reached; nil disables it.
	At func(Step)
}

// Step is a point in a run after which more data is durable.
type Step string

// The steps, in order; those of questions and messages occur once for each of them.
const (
	StepClaimed   Step = "claimed"   // no other process can begin this run
	StepPlaced    Step = "placed"    // the worktree exists, not yet recorded
	StepPrompted  Step = "prompted"  // the prompt is in the journal, not yet sent
	StepStarted   Step = "started"   // the CLI runs, its processes are not recorded
	StepSpawned   Step = "spawned"   // the processes are recorded
	StepAsked     Step = "asked"     // a question is durable
	StepAnswered  Step = "answered"  // its answer is durable, not yet delivered
	StepHanded    Step = "handed"    // the CLI has the answer
	StepNoted     Step = "noted"     // a message is in the journal, not yet sent
	StepSent      Step = "sent"      // the CLI has the message
	StepEnded     Step = "ended"     // the CLI has ended
	StepReaped    Step = "reaped"    // all its remaining processes have ended too
	StepParked    Step = "parked"    // the worktree's work is on its branch
	StepConcluded Step = "concluded" // the envelope is durable, not yet reported
	StepDelivered Step = "delivered" // the broker has it
)

// runner is one run of a job.
type runner struct {
	Options
	files      files
	spec       runs.SpecFile
	state      runs.StateFile
	reporter   *reporter
	log        *runLog
	transcript *transcript
	place      place
	mark       sandbox.Mark // of the run's processes
	claim      *disk.FileLock
	// made is the worktree that this run created; madeNew reports that its branch is new too.
	made    *job.Worktree
	madeNew bool
	tried   bool // the agent's CLI may have been started
}

// Run drives the run of the folder's spec, and returns when its result was taken. A run
// begins once: if it began before without a result, Run ends the rest of a dead runner
// and returns Conflict. If the run has a result, Run only reports it again. When ctx
// ends or the home is gone, Run ends the agent and keeps its work without a result: the
// job is interrupted and can continue.
func Run(ctx context.Context, o Options) (err error) {
	r := &runner{Options: o, files: files(o.Folder)}
	if r.spec, err = r.files.spec(); err != nil {
		return err
	}
	ctx, cancel := whileAtHome(ctx, o.Folder, cmp.Or(o.LookEvery, lookEvery))
	defer cancel()
	defer func() { err = errors.Join(err, r.claim.Release()) }()
	r.reporter = newReporter(o.Broker, r.spec)
	ending, stop := context.WithCancel(context.WithoutCancel(ctx)) // a run that is asked to end still reports
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
		r.reporter.start(ending, r.state)
	}
	r.deliver(ctx, result)
	stop()
	r.reporter.wait()
	return nil
}

// carryOut performs the run and returns its durable result.
func (r *runner) carryOut(ctx, ending context.Context) (_ *api.RunnerResult, err error) {
	if err := r.claimRun(ending); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveCgroup(r.mark)) }() // reap already did, if it was reached
	if r.log, err = openLog(r.Logs, r.spec.Job, r.MaxLogBytes); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.log.close()) }()
	if r.transcript, err = openTranscript(r.Logs, r.spec.Job); err != nil {
		return nil, err
	}
	defer func() { // after the result: a disk that failed may work again
		if err := r.transcript.close(); err != nil {
			r.Log.Warn("the transcript of the job may not be durable", "job", r.spec.Job, "err", err)
		}
	}()
	r.transcript.room = newRoom(r.MaxLogBytes)
	r.reporter.start(ending, r.state)
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
	_ = r.transcript.flush() // close retries and reports a failure
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

// conserve writes the envelope, the only copy of the result. If the disk fails, it
// retries until Timeout or ctx ends.
func (r *runner) conserve(ctx context.Context, envelope runs.Envelope) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
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
	envelope.Variables, envelope.Message, envelope.MessageBy = d.variables, r.spec.Prompt, r.spec.PromptBy
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

// claimRun claims the run for this process, and ends what an earlier run of the job
// left. It fails with Conflict if a runner is alive.
func (r *runner) claimRun(ctx context.Context) error {
	found, err := ReadFiles(r.Folder)
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
	// The claim has the group's path before the group exists, so that no group is forgotten.
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

// leaveTime is the timeout for the end of an earlier run's runner: the broker has its
// result and began the next run at once.
const leaveTime = 30 * time.Second

// hasLeft waits for the end of the found runner, and reports whether it ended.
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

// reapTime is the timeout for ending all that a job left.
const reapTime = 30 * time.Second

// reap ends the remaining processes of the job.
func (r *runner) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	return sandbox.End(ctx, r.mark, r.state.Processes)
}

// deliver offers the result until a broker has it or the wait ends.
func (r *runner) deliver(ctx context.Context, result *api.RunnerResult) {
	r.reporter.finish(result)
	timer := time.NewTimer(r.Timeout)
	defer timer.Stop()
	for {
		select {
		case order := <-r.reporter.orders:
			r.reporter.outcome(api.OrderOutcome{ID: order.ID, Error: errEnded})
			continue
		case <-r.reporter.accepted:
			r.at(StepDelivered)
		case <-timer.C:
		case <-ctx.Done():
		}
		return
	}
}

// errEnded refuses an order that came after the agent's end.
var errEnded = bridge.Errorf(bridge.Unavailable, "the agent has ended: this is for its next run")

// save makes the state durable and reports it.
func (r *runner) save() error {
	r.state.UpdatedAt = r.moment()
	r.reporter.setState(r.state)
	return r.files.saveState(r.state)
}

func (r *runner) moment() job.Millis { return job.Millis(r.Now().UnixMilli()) }

func (r *runner) at(step Step) {
	if r.At != nil {
		r.At(step)
	}
}
