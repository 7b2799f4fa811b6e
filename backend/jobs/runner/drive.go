package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sandbox"
)

const (
	// closeTime is the timeout for the CLI's end; then its process group is killed.
	closeTime = 15 * time.Second
	// longRetry is the longest pause of a CLI before a retry at its provider. If the
	// pause is longer, the run ends with the provider's message.
	longRetry = 5 * time.Minute
	// saveEvery is the shortest interval between writes of the state for a step or a count alone.
	saveEvery = time.Second
)

// drive is one CLI at work. Only the goroutine of its loop uses it. Slow calls of the
// CLI run in other goroutines and post their results to the loop.
type drive struct {
	*runner
	run   job.Run
	watch *runs.Watch
	saw   evidence
	// variables are the names of the owner's variables in the job's environment.
	variables []string
	posts     chan func()   // functions for the loop to run
	finished  chan struct{} // closed when the loop accepts no more

	questions map[string]*job.Approval    // the open questions of the CLI, by question id
	orders    map[string]api.OrderOutcome // the outcome of each
	held      []api.Order                 // messages that wait while the run is stopped

	started   bool // the CLI has started
	activity  job.ActivityState
	accepted  map[string]bool
	sending   int            // messages in transit to the CLI
	last      *job.TurnEnded // how the last turn ended; nil while another is expected
	exited    job.Exited
	stop      job.WaitFor // the reason why the run was stopped
	stopID    string
	stopAt    time.Time
	resumed   *api.Order // the order to continue
	retryAt   time.Time
	closing   bool
	cancelled bool
	dying     bool // this process was asked to end
	saved     time.Time
	unsaved   bool
}

func newDrive(r *runner, at time.Time) *drive {
	return &drive{
		runner: r, posts: make(chan func()), finished: make(chan struct{}), saw: newEvidence(),
		watch:     runs.NewWatch(r.spec.BudgetUSD, time.Duration(r.spec.TimeoutSec)*time.Second, at),
		questions: map[string]*job.Approval{}, orders: map[string]api.OrderOutcome{}, accepted: map[string]bool{},
		activity: job.ActivityIdle,
	}
}

// begin prepares the job's place and starts the CLI. If it fails, no CLI runs.
func (d *drive) begin(ctx context.Context) error {
	if err := d.checkFolders(d.spec.Folder); err != nil {
		return err
	}
	if err := d.settleIn(ctx); err != nil {
		return err
	}
	if err := d.addWritable(); err != nil {
		return err
	}
	if err := d.checkFolders(append([]string{d.place.folder}, d.place.writable...)...); err != nil {
		return err
	}
	driver, err := d.Driver(d.spec.Kind)
	if err != nil {
		return err
	}
	spec, err := d.Fit(d.driverSpec())
	if err != nil {
		return err
	}
	if !spec.Unlinked { // a job of another PC receives no owner's variables
		d.variables = spec.Variables()
	}
	if err := d.note(Entry{Kind: EntryPrompt, ID: d.spec.PromptID, Text: d.spec.Prompt}); err != nil {
		return err
	}
	d.at(StepPrompted)
	if d.spec.Run > 1 {
		d.line(turnLine(d.spec, d.Now()))
		d.line("> " + d.spec.Prompt)
	}
	d.tried = true
	if d.run, err = driver.Start(ctx, spec); err != nil {
		return err
	}
	d.at(StepStarted)
	return nil
}

// turnLine returns the log's line for a turn that continues a job: its number, the authors
// of its message, and its time (PGE-05).
func turnLine(spec runs.SpecFile, at time.Time) string {
	from := ""
	if len(spec.PromptBy) > 0 {
		from = " from " + bridge.OneLine(strings.Join(spec.PromptBy, ", "))
	}
	return fmt.Sprintf("@ turn %d%s, %s", spec.Run, from, at.UTC().Format(time.RFC3339))
}

// addWritable adds the folders of the owner's settings to the job's writable folders.
// It logs missing folders. It fails with Invalid for a file.
func (r *runner) addWritable() error {
	if r.spec.Access == job.AccessRead || r.spec.Unlinked {
		return nil
	}
	for _, folder := range r.Writable {
		info, err := os.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.log.line("! " + folder + " of jobs.writable is not there, so this job cannot write in it.")
			continue
		case err != nil:
			return bridge.Errorf(bridge.Invalid, "jobs.writable names %s: %w", folder, err)
		case !info.IsDir():
			return bridge.Errorf(bridge.Invalid, "jobs.writable names %s, which is a file: name its folder", folder)
		}
		r.place.writable = append(slices.Clip(r.place.writable), folder)
	}
	return nil
}

// checkFolders refuses a job that writes in a reserved folder. A link may have replaced
// a permitted folder since the job was given (SEC-09).
func (r *runner) checkFolders(folders ...string) error {
	if r.spec.Access == job.AccessRead {
		return nil
	}
	for _, folder := range folders {
		if err := r.CheckFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

func (d *drive) driverSpec() job.Spec {
	return job.Spec{
		Job: d.spec.Job, Token: d.spec.Token, Depth: d.spec.Depth, Kind: d.spec.Kind, Prompt: job.Message{ID: d.spec.PromptID, Text: d.spec.Prompt},
		Note: d.spec.Note, Title: d.spec.Title, Folder: d.place.folder, Unlinked: d.spec.Unlinked, Model: d.spec.Model, Effort: d.spec.Effort,
		Access: d.spec.Access, Session: d.spec.Session, StateFolder: d.Folder, Writable: d.place.writable,
		ToolLevelOnly: d.spec.ToolOnly, ACP: job.ACPAgent{Name: d.spec.ACPAgent},
	}
}

// loop handles events until the CLI has ended.
func (d *drive) loop(ctx context.Context) {
	defer close(d.finished)
	done := ctx.Done()
	for {
		timer := time.NewTimer(d.next())
		select {
		case event, open := <-d.run.Events():
			if !open {
				timer.Stop()
				return
			}
			d.event(event)
		case order := <-d.reporter.orders:
			d.order(order)
		case post := <-d.posts:
			post()
		case <-timer.C:
		case <-done:
			done, d.dying = nil, true
			d.close()
		}
		timer.Stop()
		d.tick()
	}
}

// later runs slow work in another goroutine, and then passes its error to then in the loop.
func (d *drive) later(work func() error, then func(error)) {
	go func() {
		err := work()
		select {
		case d.posts <- func() { then(err) }:
		case <-d.finished:
		}
	}()
}

// next returns how long the loop may sleep if no event arrives.
func (d *drive) next() time.Duration {
	now := d.Now()
	at := now.Add(time.Hour)
	sooner := func(moment time.Time) {
		if !moment.IsZero() && moment.Before(at) {
			at = moment
		}
	}
	sooner(d.watch.Next(now))
	sooner(d.retryAt)
	if d.unsaved {
		sooner(d.saved.Add(saveEvery))
	}
	for _, approval := range d.questions {
		if approval.State == job.ApprovalAsked {
			sooner(approval.ExpiresAt.Time())
		}
	}
	return max(0, at.Sub(now)) + time.Millisecond // the times are cut to milliseconds
}

// tick performs the actions that are due.
func (d *drive) tick() {
	now := d.Now()
	for question, approval := range d.questions {
		if approval.Expire(now) {
			d.decided(question, approval, nil)
		}
	}
	if !d.retryAt.IsZero() && !now.Before(d.retryAt) && !d.closing && d.stop == "" {
		d.retry()
	}
	if stop := d.watch.Stop(now); stop != "" && d.stop == "" && !d.closing {
		d.halt(stop)
	}
	d.settle()
	d.show()
}

// settle ends the run if no more work can follow.
func (d *drive) settle() {
	if d.closing || d.last == nil || d.activity != job.ActivityIdle || d.sending > 0 || !d.retryAt.IsZero() {
		return
	}
	stopped := d.stop != "" && d.stop != job.ForSilence
	wait, retry := job.RetryAfter(d.last.Why, d.state.Tried)
	switch {
	case stopped && d.resumed != nil:
		d.proceed()
	case stopped && (retry || d.last.Why == job.EndInterrupted): // the run waits for an order to continue
	case retry:
		d.retryAt = d.Now().Add(wait)
	default:
		d.close()
	}
}

// retry sends a message to continue after a provider's failure (JOB-16).
func (d *drive) retry() {
	d.retryAt = time.Time{}
	d.state.Tried++
	before := d.last
	message := job.Message{ID: uuid.NewString(), Text: job.GoOn}
	if err := d.note(Entry{Kind: EntryRetry, ID: message.ID, Text: message.Text}); err != nil {
		d.close()
		return
	}
	d.last = nil
	d.send(message, func(err error) {
		if err != nil && d.last == nil {
			d.last = before
			d.close()
		}
	})
}

// halt stops a run that exceeded its budget or loops, and asks whether to continue
// (JOB-17). For silence it stops nothing: a long command is silent too.
func (d *drive) halt(stop job.WaitFor) {
	d.stop, d.stopID, d.stopAt, d.retryAt = stop, uuid.NewString(), d.Now(), time.Time{}
	d.watch.Pause(d.Now())
	d.line("! stopped: " + string(stop))
	if err := d.note(Entry{Kind: EntryStop, ID: d.stopID, Text: string(stop)}); err != nil {
		d.Log.Warn("a stop could not be written down", "job", d.spec.Job, "err", err)
	}
	if stop == job.ForSilence {
		return
	}
	d.later(func() error { return d.run.Interrupt(context.Background()) }, func(error) {}) // TurnEnded reports it
}

// send sends a message to the CLI, and then calls then with the result.
func (d *drive) send(message job.Message, then func(error)) {
	d.sending++
	d.at(StepNoted)
	d.later(func() error { return d.run.Message(context.Background(), message) }, func(err error) {
		d.sending--
		d.at(StepSent)
		d.noteSent(message.ID, err)
		if err == nil && !d.accepted[message.ID] {
			d.last = nil // the turn that it begins has not ended yet
		}
		then(err)
	})
}

// close ends the CLI and, with it, the loop.
func (d *drive) close() {
	if d.closing {
		return
	}
	d.closing = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := d.run.Close(ctx); err != nil {
			d.Log.Warn("the agent could not be ended", "job", d.spec.Job, "err", err)
		}
	}()
}

// over cleans up after the loop: it withdraws open questions and refuses open orders.
func (d *drive) over() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := d.run.Close(ctx); err != nil {
		d.Log.Warn("the agent could not be ended", "job", d.spec.Job, "err", err)
	}
	for question := range d.questions {
		d.withdrawn(question)
	}
	for _, order := range d.held {
		d.outcome(order.ID, errEnded)
	}
	if d.resumed != nil {
		d.outcome(d.resumed.ID, errEnded)
	}
}

// ended returns the end of the run's last turn, or EndLost without one.
func (d *drive) ended() job.TurnEnded {
	if d.last != nil {
		return *d.last
	}
	return job.TurnEnded{Why: job.EndLost, Message: d.exited.Words()}
}

// wasInterrupted reports whether this process was asked to end before the agent had a
// result.
func (d *drive) wasInterrupted() bool {
	return d.dying && !d.cancelled && (d.last == nil || d.last.Why == job.EndInterrupted || d.last.Why == job.EndLost)
}

// event handles an event of the CLI.
func (d *drive) event(event job.Event) {
	if _, waits := event.(job.Retrying); !waits {
		d.hear()
	}
	for _, statement := range d.transcript.hear(event) {
		d.record(statement)
	}
	switch e := event.(type) {
	case job.Spawned:
		d.state.Processes, d.state.Layer, d.state.Tracking = e.Processes, d.layer(e.Floor), d.tracking(e.Processes)
		if d.spec.Access != job.AccessRead && e.Floor != job.FloorNone {
			d.line(d.place.sentence())
		}
		d.keep(true)
		d.at(StepSpawned)
	case job.Opened:
		d.started, d.state.Session, d.state.Model = true, e.Session, cmp.Or(e.Model, d.state.Model)
		d.state.NextTurn = !e.Capabilities.LiveMessage
		d.keep(true)
	case job.Titled:
		d.state.Title = cmp.Or(d.state.Title, e.Title)
		d.keep(false)
	case job.Activity:
		d.started, d.activity = true, e.State
	case job.Accepted:
		d.accepts(e.Message)
	case job.Inserted:
		d.accepts(e.Message)
	case job.Text:
		d.line(e.Text)
	case job.Usage:
		d.state.Tokens, d.state.CostUSD = e.Input+e.Output, e.CostUSD
		d.watch.Spend(e.CostUSD)
		d.keep(false)
	case job.Retrying:
		d.retrying(e)
	case job.TurnEnded:
		d.turnEnded(e)
	case job.Exited:
		d.exited = e
	case job.StepStarted, job.StepEnded:
		d.step(event)
	case job.Asked, job.Resolved, job.Withdrawn:
		d.question(event)
	case job.LineCut:
		d.line(cutSentence(e))
	case job.SocketsOpen:
		d.line("! This job can connect to the sockets of your other programs: this system does not let Bridge look into the job's processes.")
	case job.SocketRefused:
		d.line("! Bridge refused a connection to the socket " + e.Socket + ". You can allow it to jobs that may edit: jobs.sockets in config.json.")
	case job.Noise:
	}
}

// layer returns the isolation below the agent. If the sandbox cannot keep the agent
// from signalling other processes, it returns job.FloorSignals (SEC-08).
func (r *runner) layer(floor job.Floor) job.Floor {
	scopes := r.ScopesSignals
	if scopes == nil {
		scopes = sandbox.ScopesSignals
	}
	if floor == job.FloorSandbox && !scopes() {
		return job.FloorSignals
	}
	return floor
}

// tracking returns how Bridge identifies the run's processes.
func (r *runner) tracking(agents []job.Process) runs.Tracking {
	if slices.ContainsFunc(agents, func(p job.Process) bool { return !sandbox.HasCgroup(r.mark, p.PID) }) {
		return runs.TrackedByProcess
	}
	return runs.TrackedByCgroup
}

// hear records that the CLI is alive: a run that was stopped for its silence continues.
func (d *drive) hear() {
	d.watch.Hear(d.Now())
	if d.stop == job.ForSilence {
		d.watch.Allow(d.stop, d.Now())
		d.stop, d.stopID = "", ""
	}
}

// accepts records that the CLI has a message. Another turn follows.
func (d *drive) accepts(id string) {
	d.started = true
	if d.accepted[id] {
		return
	}
	d.accepted[id] = true
	if !d.closing {
		d.last = nil
	}
	if id == d.spec.PromptID {
		d.noteSent(id, nil)
	}
}

// turnEnded records the end of the turn. An end that our own close caused does not
// replace an earlier one.
func (d *drive) turnEnded(end job.TurnEnded) {
	if !d.closing || d.last == nil || end.Why == job.EndAnswer {
		d.last = &end
	}
	text := "! the turn ended: " + string(end.Why)
	if end.Message != "" {
		text += ": " + end.Message
	}
	if end.Why != job.EndAnswer {
		d.line(text)
	}
}

// retrying limits the CLI's own retries. A used up limit or a pause that is too long
// ends the run immediately.
func (d *drive) retrying(retry job.Retrying) {
	d.line("! the provider is asked again: " + string(retry.Why) + " " + retry.Message)
	tooLong := retry.Until.After(d.Now().Add(longRetry))
	if d.closing || retry.Why != job.EndLimit && !tooLong {
		return
	}
	end := job.TurnEnded{Why: retry.Why, Message: retry.Message, Until: retry.Until}
	d.last = &end
	d.close()
}

// show updates the state from the run's activity.
func (d *drive) show() {
	now := d.Now()
	wait := d.waits()
	state := job.Running
	switch {
	case wait != nil:
		state = job.Waiting
	case !d.started:
		state = job.Starting
	}
	if wait != nil && wait.For != job.ForRetry {
		d.watch.Pause(now)
	} else {
		d.watch.Resume(now)
	}
	changed := state != d.state.State || (wait == nil) != (d.state.Wait == nil) || wait != nil && *wait != *d.state.Wait
	if changed {
		d.state.State, d.state.Wait = state, wait
	}
	if changed || d.unsaved && now.Sub(d.saved) >= saveEvery {
		d.keep(true)
	}
}

// waits returns what the run waits for, or nil while it works.
func (d *drive) waits() *job.Wait {
	if d.closing {
		return nil
	}
	if d.stop != "" {
		return &job.Wait{For: d.stop, ID: d.stopID, Since: job.Millis(d.stopAt.UnixMilli())}
	}
	var first *job.Approval
	for _, approval := range d.questions {
		if approval.State == job.ApprovalAsked && (first == nil || approval.AskedAt < first.AskedAt || approval.AskedAt == first.AskedAt && approval.ID < first.ID) {
			first = approval
		}
	}
	if first != nil {
		return &job.Wait{For: job.ForApproval, ID: first.ID, Until: first.ExpiresAt}
	}
	if !d.retryAt.IsZero() {
		return &job.Wait{For: job.ForRetry, Until: job.Millis(d.retryAt.UnixMilli())}
	}
	return nil
}

// keep reports the state, and writes it now or soon.
func (d *drive) keep(now bool) {
	if !now {
		d.unsaved = true
		d.state.UpdatedAt = d.moment()
		d.reporter.setState(d.state)
		return
	}
	d.saved, d.unsaved = d.Now(), false
	if err := d.save(); err != nil {
		d.Log.Warn("the state of the job could not be written", "job", d.spec.Job, "err", err)
	}
}

// line adds to the log and reports the new state to followers.
func (d *drive) line(text string) {
	d.log.line(text)
	d.keep(false)
}

// note writes an entry of this run to the journal.
func (d *drive) note(entry Entry) error {
	entry.At, entry.Run = d.moment(), d.spec.Run
	if err := d.files.append(entry); err != nil {
		return err
	}
	if statement, ok := saidIn(entry, d.spec.Supervisor); ok {
		d.record(statement)
	}
	return nil
}

// noteSent records the result of a send.
func (d *drive) noteSent(id string, err error) {
	entry := Entry{Kind: EntrySent, ID: id}
	if err != nil {
		entry.Error = err.Error()
	}
	if errors.Is(err, job.ErrUnconfirmed) {
		return // unknown: the journal has no entry for it
	}
	if err := d.note(entry); err != nil {
		d.Log.Warn("what the agent has taken could not be written down", "job", d.spec.Job, "err", err)
	}
}

// refusal converts an error to the error of an order's outcome.
func refusal(err error) *bridge.Error {
	var known *bridge.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, job.ErrEnded):
		return errEnded
	case errors.Is(err, job.ErrUnconfirmed):
		return bridge.Errorf(bridge.Internal, "%w", job.ErrUnconfirmed)
	case errors.As(err, &known):
		return known
	default:
		return bridge.Errorf(bridge.Invalid, "the agent did not take it: %w", err)
	}
}
