package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"bridge/backend/bridge"
	"bridge/backend/disk"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/proc"
)

// results is the part about what came of runs.
type results struct{ *core }

func (j *results) envelopePath(name string) string {
	return filepath.Join(j.folder(name), "envelope.json")
}

// readEnvelope reads the envelope of a job's last run that has one. job.ErrManual
// where it is too large to be read by itself; size tells how large.
func (j *results) readEnvelope(name string) (envelope job.Envelope, size int64, err error) {
	info, err := os.Stat(j.envelopePath(name))
	if err != nil {
		return job.Envelope{}, 0, err
	}
	if info.Size() > job.MaxEnvelopeBytes {
		return job.Envelope{}, info.Size(), job.ErrManual
	}
	data, err := disk.ReadLimited(j.envelopePath(name), job.MaxEnvelopeBytes)
	if err != nil {
		return job.Envelope{}, info.Size(), err
	}
	envelope, err = job.DecodeEnvelope(data, name)
	return envelope, info.Size(), err
}

// close ends a run that no runner can end any more, or ever began: the envelope is
// the broker's then.
func (j *results) close(one job.Job, outcome job.Outcome, problem string) error {
	envelope := job.NewEnvelope(one.Name, one.Run, outcome, "", job.Evidence{}, j.opts.Now())
	envelope.Error, envelope.Title, envelope.Model = problem, one.Title, one.Model
	envelope.Session, envelope.Workdir = one.SessionID, one.Workdir
	data, err := envelope.Encode()
	if err != nil {
		return err
	}
	if err := disk.MakeDir(j.folder(one.Name)); err != nil {
		return err
	}
	if err := disk.WriteAtomic(j.envelopePath(one.Name), data, disk.PrivateFile); err != nil {
		return err
	}
	return j.finish(one.Name, one.Run)
}

// finish takes the result of that run in: durably, then its message goes out, then
// those who wait get its slot. It may be asked again at any time.
func (j *results) finish(name string, number int) error {
	outcome, err := j.outcome(name, number)
	if err != nil {
		return err
	}
	at := j.opts.Now()
	err = j.change(func(r *job.Registry) error {
		one, has := r.Get(name)
		if !has || one.Run != number || one.State.IsEnded() {
			return errSame
		}
		transition := job.End(number, outcome, at)
		if outcome.State == job.Interrupted {
			transition = job.Lose(number, at)
		}
		_, err := r.Apply(name, transition)
		return err
	})
	if err != nil {
		return err
	}
	j.kick()
	return j.send(j.life, name)
}

// outcome is what the envelope of that run says. A run with one that is too large
// to be read has ended as its runner said beside.
func (j *results) outcome(name string, number int) (job.Outcome, error) {
	envelope, _, err := j.readEnvelope(name)
	if errors.Is(err, job.ErrManual) {
		state, stateErr := j.runnerState(name)
		if stateErr == nil && state.Run == number && state.State.IsEnded() && state.State != job.Interrupted {
			return job.Outcome{State: state.State}, nil
		}
		return job.Outcome{State: job.Failed, Ended: job.EndFailed}, nil
	}
	if err != nil {
		return job.Outcome{}, err
	}
	if envelope.Run != number {
		return job.Outcome{}, bridge.Errorf(bridge.NotFound, "run %d of %s has no envelope yet", number, name)
	}
	return envelope.Outcome(), nil
}

// send sends the result message of an ended run under its one id, and notes that it
// is durable (JOB-03). What goes with the run ends with it.
func (j *results) send(ctx context.Context, name string) error {
	one, err := j.get(name)
	if err != nil || !one.State.IsEnded() {
		return err
	}
	r, late := j.leftOf(one)
	if r != nil {
		if err := j.approvals.withdrawAll(r); err != nil {
			return err
		}
	}
	if !one.ResultSent && one.Run > 0 {
		body, err := j.body(one)
		if err != nil {
			return err
		}
		if err := j.deliver(ctx, one, job.ResultID(one.Name, one.Run), job.Conversation(one.Name), body); err != nil {
			return err
		}
	}
	err = j.change(func(book *job.Registry) error {
		first, err := book.MarkSent(one.Name, one.Run)
		if err == nil && !first {
			return errSame // another one was quicker, or it goes on already
		}
		for _, words := range late {
			if err == nil {
				_, err = book.Message(one.Name, words, job.Settings{}, j.opts.Now())
			}
		}
		return err
	})
	if err == nil {
		j.forget(r)
		j.kick()
	}
	return err
}

// leftOf is what goes with the ended run, and the words that it has not heard: the
// job goes on with them, unless it was cancelled.
func (j *results) leftOf(one job.Job) (r *run, late []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r = j.runs[one.Name]
	if r == nil || r.number != one.Run {
		return nil, nil
	}
	if one.State != job.Cancelled && !one.CancelAsked {
		late = r.unsaid()
	}
	return r, late
}

// forget lets go of a run whose books are closed.
func (j *results) forget(r *run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r == nil {
		return
	}
	if j.runs[r.job] == r {
		delete(j.runs, r.job)
	}
	r.signal()
}

func (j *results) body(one job.Job) (string, error) {
	envelope, size, err := j.readEnvelope(one.Name)
	if errors.Is(err, job.ErrManual) {
		return job.ManualBody(one.Name, j.envelopePath(one.Name), size), nil
	}
	return envelope.Body(j.envelopePath(one.Name)), err
}

// deliver writes to the job's supervisor.
func (j *results) deliver(ctx context.Context, one job.Job, id, conversation, body string) error {
	from := bridge.Address{ID: one.Name, Name: one.Name, Agent: one.Agent}
	return j.opts.Broker.Deliver(ctx, from, one.Supervisor, api.SendArgs{
		To: one.Owner, MessageID: id, ConversationID: conversation, Body: body,
	})
}

// runnerState is what the runner of a job wrote last of itself.
func (j *results) runnerState(name string) (job.StateFile, error) {
	data, err := disk.ReadLimited(filepath.Join(j.folder(name), "state.json"), maxRegistryBytes)
	if err != nil {
		return job.StateFile{}, err
	}
	return job.DecodeState(data, name)
}

// lookAtRunner ends the run of a runner that is gone: by what it left, or as
// interrupted. Gone is told by its identity, never by age (JOB-02).
func (j *results) lookAtRunner(one job.Job) {
	j.mu.Lock()
	r := j.runs[one.Name]
	mayBeGone := r != nil && r.number == one.Run && !r.launching && r.conn == nil
	j.mu.Unlock()
	if !mayBeGone || !j.isGone(one) {
		return
	}
	if present, err := j.get(one.Name); err != nil || present.Run != one.Run || !present.State.IsActive() {
		return // it has ended meanwhile
	}
	j.reap(one)
	err := j.finish(one.Name, one.Run)
	if err != nil && j.hasNoResult(one) {
		outcome := job.Outcome{State: job.Interrupted, Ended: job.EndedRunnerGone}
		if one.CancelAsked {
			outcome = job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}
		}
		err = j.close(one, outcome, "")
	}
	j.logged("end "+one.Name+", whose runner is gone", err)
}

// hasNoResult reports whether the run has no envelope that says what came of it.
func (j *results) hasNoResult(one job.Job) bool {
	envelope, _, err := j.readEnvelope(one.Name)
	return err != nil && !errors.Is(err, job.ErrManual) || err == nil && envelope.Run != one.Run
}

// isGone reports whether the runner of an active job does not run any more.
func (j *results) isGone(one job.Job) bool {
	pid, identity := 0, ""
	if one.Host != nil {
		pid, identity = one.Host.PID, one.Host.Identity
	}
	if state, err := j.runnerState(one.Name); err == nil && state.Run == one.Run && state.Runner.PID > 0 {
		pid, identity = state.Runner.PID, state.Runner.Identity
	}
	if pid == 0 || identity == "" {
		// Its start was under way when a broker died: it may yet be heard of.
		return j.opts.Now().Sub(j.began) > j.opts.Pace.Grace && !proc.Alive(pid)
	}
	return !isRunning(job.Process{PID: pid, Identity: identity})
}

// isRunning reports whether that very process runs. Where the system does not tell,
// it does.
func isRunning(process job.Process) bool {
	identity, err := proc.Identity(process.PID)
	if errors.Is(err, proc.ErrGone) {
		return false
	}
	return err != nil || identity == process.Identity
}

// reap ends what a dead runner left behind, each told by its identity (JOB-06).
func (j *results) reap(one job.Job) {
	state, err := j.runnerState(one.Name)
	if err != nil || state.Run != one.Run {
		return
	}
	for _, process := range state.Processes {
		if process.PID > 1 && process.Identity != "" && isRunning(process) {
			j.logged("end a process that "+one.Name+" left", proc.KillTree(process.PID))
		}
	}
}
