package jobs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// results is the part that handles the results of runs.
type results struct{ *core }

// close ends a run that has no runner to end it, or that never began. The broker writes
// the envelope then.
func (j *results) close(entry job.Job, outcome job.Outcome, problem string) error {
	if err := j.files.WriteEnvelope(entry, outcome, problem, j.opts.Now()); err != nil {
		return err
	}
	return j.finish(entry.Name, entry.Run)
}

// makeSure writes an ended run's missing envelope, as after a restore or file damage.
// The result is on disk before it is sent.
func (j *results) makeSure(entry job.Job) error {
	if !j.files.HasNoResult(entry) {
		return nil
	}
	outcome, problem := job.Outcome{State: entry.State, Ended: entry.Ended, Until: entry.LimitUntil.Time()}, ""
	if entry.State == job.Finished {
		outcome, problem = job.Outcome{State: job.Failed, Ended: job.EndFailed}, "It had finished, but its result is gone or damaged."
	}
	return j.files.WriteEnvelope(entry, outcome, problem, j.opts.Now())
}

// finish records the result of that run durably. Then it sends the result message and
// frees the slot. It is safe to call it repeatedly.
func (j *results) finish(name string, number int) error {
	outcome, err := j.files.Outcome(name, number)
	if err != nil {
		return err
	}
	at := j.opts.Now()
	state, _ := j.files.ReadState(name) // the broker may have missed its last report
	prompted, unread := jobfiles.PromptStarted(j.files.Folder(name), number)
	if unread != nil {
		j.logged("read whether "+name+" had its prompt", unread)
		prompted = true // an unclear outcome is never retried
	}
	err = j.change(func(r *job.Registry) error {
		entry, has := r.Get(name)
		if !has || entry.Run != number || entry.State.IsEnded() {
			return errSame
		}
		if state.Run == number {
			if _, err := r.Update(name, func(entry *job.Job) {
				jobfiles.NoteWorktree(entry, state.Worktree)
				entry.SessionID = cmp.Or(state.Session, entry.SessionID)
			}); err != nil {
				return err
			}
		}
		transition := job.End(number, outcome, at)
		if outcome.State == job.Interrupted {
			transition = job.Lose(number, at, prompted)
		}
		_, err := r.Apply(name, transition)
		return err
	})
	if err != nil {
		return err
	}
	j.notifyScheduler()
	defer j.landings.RequestPoll()
	return j.send(j.tasks.Context(), name)
}

// send sends the result message of an ended run under its unique id, and records that
// it is durable (JOB-03). It also closes the run's approvals and records.
func (j *results) send(ctx context.Context, name string) error {
	entry, err := j.get(name)
	if err != nil || !entry.State.IsEnded() {
		return err
	}
	pending := j.leftOf(entry)
	r := pending.run
	if r != nil {
		if err := j.approvals.withdrawAll(r); err != nil {
			return err
		}
	}
	if err := j.passOn(ctx, name); err != nil {
		return err
	}
	if !entry.ResultSent && entry.Run > 0 && !j.isDelivered(r) {
		j.logged("keep the transcript of "+name, j.transcripts.keep(ctx, entry)) // a failed transcript is stored later
		if err := j.makeSure(entry); err != nil {
			return err
		}
		body, err := j.body(entry)
		if err != nil {
			return err
		}
		if err := j.deliver(ctx, entry, runs.ResultID(entry.Name, entry.Run), runs.Conversation(entry.Name), body+runs.UnclearBody(pending.unclear)); err != nil {
			return err
		}
	}
	if pending.unread { // the unread messages are unknown: the records stay open
		j.mu.Lock()
		defer j.mu.Unlock()
		r.delivered = true
		return nil
	}
	err = j.change(func(book *job.Registry) error {
		first, err := book.MarkSent(entry.Name, entry.Run)
		if err == nil && !first {
			return errSame // another call was faster, or the job already continues
		}
		if err == nil {
			_, err = book.Update(entry.Name, func(present *job.Job) { present.NoteSaid(pending.messageIDs...) })
		}
		for _, text := range pending.undelivered {
			if err == nil {
				_, err = book.Message(entry.Name, text, job.Settings{}, j.opts.Now())
			}
		}
		return err
	})
	if err == nil {
		j.forget(r)
		j.notifyScheduler()
	}
	return err
}

// sendFirst sends the pending result of an ended run. A message that came too late for
// the run then continues the job.
func (j *results) sendFirst(name string) error {
	entry, err := j.get(name)
	if err == nil && entry.IsUnsent() {
		err = j.send(j.tasks.Context(), name)
	}
	return err
}

// leftover is the remaining data of an ended run.
type leftover struct {
	run         *run     // nil if its records are closed
	undelivered []string // messages that it has not received: the job continues with them
	unclear     []string // messages that it may have received
	unread      bool     // its messages cannot be read
	messageIDs  []string // the ids of all messages that it was sent
}

// leftOf returns the leftover of the ended run. If the job was cancelled, no message
// continues it.
func (j *results) leftOf(entry job.Job) leftover {
	started, err := jobfiles.StartedDeliveries(j.files.Folder(entry.Name), entry.Run)
	j.logged("read what "+entry.Name+" was told", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.runs[entry.Name]
	if r == nil || r.number != entry.Run {
		return leftover{}
	}
	r.started = started
	pending := leftover{run: r, messageIDs: slices.Clone(r.messageIDs)}
	if entry.State != job.Cancelled && !entry.CancelAsked {
		if pending.unread = j.runners.mendLocked(r) != nil; !pending.unread {
			pending.undelivered = r.undelivered()
		}
	} else {
		for _, order := range r.orders { // they are never sent again
			j.runners.settled(order, api.OrderOutcome{Error: bridge.Errorf(bridge.Conflict, "the job was cancelled")})
		}
	}
	pending.unclear = r.unclear()
	return pending
}

// isDelivered reports whether the result message is durable and only the records are open.
func (j *results) isDelivered(r *run) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r != nil && r.delivered
}

// forget removes a run whose records are closed.
func (j *results) forget(r *run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r == nil {
		return
	}
	if j.runs[r.job] == r {
		delete(j.runs, r.job)
		j.publish()
		if !r.isLeft {
			j.trees.Forget(r.job)
		}
	}
	r.notify()
}

func (j *results) body(entry job.Job) (string, error) {
	envelope, size, err := j.files.ReadEnvelope(entry.Name)
	if errors.Is(err, runs.ErrManual) {
		return runs.ManualBody(entry.Name, j.files.Envelope(entry.Name), size), nil
	}
	return envelope.Body(j.files.Envelope(entry.Name)), err
}

// deliver sends a message to the job's supervisor, and repeats if the supervisor
// changes meanwhile. For a job of a paired PC it does nothing: that PC polls.
func (j *results) deliver(ctx context.Context, entry job.Job, id, conversation, body string) error {
	if entry.PC != "" {
		return nil
	}
	from := entry.Sender()
	for {
		caller := j.answersTo(entry)
		err := j.opts.Broker.Deliver(ctx, from, caller.ID, api.SendArgs{To: caller.Name, MessageID: id, ConversationID: conversation, Body: body})
		if current := j.answersTo(entry); err != nil || current == caller {
			return err
		}
	}
}

// passOn forwards the ended job's unread results of its child jobs to their current
// supervisors.
func (j *results) passOn(ctx context.Context, name string) error {
	for _, child := range j.all() {
		if child.Parent != name {
			continue
		}
		caller := j.answersTo(child)
		for run := 1; run <= child.Run; run++ {
			if _, err := j.opts.Broker.GiveOn(ctx, runs.ResultID(child.Name, run), caller.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRunner ends the run of a runner that is gone: with its recorded result, or as
// interrupted. The process identity decides, never the age (JOB-02).
func (j *results) checkRunner(entry job.Job) {
	j.mu.Lock()
	r := j.runs[entry.Name]
	mayBeGone := r != nil && r.number == entry.Run && !r.launching && r.conn == nil
	j.mu.Unlock()
	if !mayBeGone {
		return
	}
	present, err := j.get(entry.Name) // the caller's copy may predate the record of the runner
	if err != nil || present.Run != entry.Run || !present.State.IsActive() || !j.isGone(present) {
		return
	}
	entry = present
	if !j.bar(entry) {
		return
	}
	j.reap(entry)
	err = j.finish(entry.Name, entry.Run)
	if err != nil && j.files.HasNoResult(entry) {
		outcome := job.Outcome{State: job.Interrupted, Ended: job.EndedRunnerGone}
		if entry.CancelAsked {
			outcome = job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}
		}
		err = j.close(entry, outcome, "")
	}
	j.logged("end "+entry.Name+", whose runner is gone", err)
}

// bar prevents a late runner from claiming a run that ends without it, and reports
// whether the run may end. If a runner claimed the run just now, the run continues.
func (j *results) bar(entry job.Job) bool {
	err := orphans.Bar(j.files.Folder(entry.Name), entry.Run)
	switch {
	case errors.Is(err, fs.ErrExist):
		return j.isGone(entry)
	case errors.Is(err, fs.ErrNotExist):
		return true // without its folder no run can begin
	}
	j.logged("bar "+entry.Name+" to a runner that comes late", err)
	return err == nil
}

// isGone reports whether the runner of an active job has ended.
func (j *results) isGone(entry job.Job) bool {
	pid, identity := 0, ""
	if entry.Host != nil {
		pid, identity = entry.Host.PID, entry.Host.Identity
	}
	if claim, err := orphans.ClaimOf(j.files.Folder(entry.Name), entry.Run); err == nil && claim.Runner.PID > 0 { // it was faster than the recorded runner
		pid, identity = claim.Runner.PID, claim.Runner.Identity
	}
	if state, err := j.files.ReadState(entry.Name); err == nil && state.Run == entry.Run && state.Runner.PID > 0 {
		pid, identity = state.Runner.PID, state.Runner.Identity
	}
	if pid == 0 || identity == "" {
		// A broker died during the start of the runner: the runner may still report.
		return j.opts.Now().Sub(j.began) > j.opts.Timing.Grace && !proc.Alive(pid) && !orphans.Drives(j.files.Folder(entry.Name), entry.Run, job.Process{})
	}
	return !orphans.Drives(j.files.Folder(entry.Name), entry.Run, job.Process{PID: pid, Identity: identity})
}

// reap ends the processes that a dead runner left (JOB-06).
func (j *results) reap(entry job.Job) {
	remaining, err := orphans.End(j.tasks.Context(), j.files.Folder(entry.Name), j.trees.Seen(entry.Name)...)
	if len(remaining) > 0 {
		j.opts.Log.Warn("processes of a job were left by its runner and ended", "job", entry.Name, "processes", remaining)
	}
	mark, markErr := orphans.MarkOf(j.files.Folder(entry.Name), entry.Run)
	if err == nil && markErr == nil { // for a runner that had not recorded its state
		err = sandbox.RemoveCgroup(mark)
	}
	j.logged("end the processes that "+entry.Name+" left", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[entry.Name]; r != nil && r.number == entry.Run {
		r.isLeft = err != nil
	}
}
