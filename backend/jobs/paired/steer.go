package paired

import (
	"context"
	"errors"
	"fmt"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/platform/ipc/api"
)

// Say sends a message to a job on its PC (RMT-10). It fails with the error of that PC, and with
// Unsupported without links. If there is no answer, the message may have arrived, so it is
// never resent automatically.
func (j *Jobs) Say(ctx context.Context, entry job.Job, id string, control job.Control) (api.JobMessaged, error) {
	args := job.MessageArgs{
		Job: entry.Remote.Name, Message: control.Message, Title: control.Settings.Title, Model: control.Settings.Model,
		Effort: control.Settings.Effort, Access: string(control.Settings.Access),
	}
	if err := j.recordMessage(entry, job.MillisOf(j.opts.Now())); err != nil {
		return api.JobMessaged{}, err
	}
	value, err := j.ask(ctx, entry, remote.Request{Operation: remote.Control, Control: remote.ControlArgs{ID: id}}, args)
	(*j.link.Load()).Notify()
	if code := bridge.CodeOf(err); err != nil && code != bridge.Unavailable && code != bridge.Internal {
		j.logged("note that words were refused", j.recordMessage(entry, 0))
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	err = j.RecordReport(entry.Name, value, nil) // the job is followed after that too: an older report may arrive later
	answer := api.JobMessaged{JobStatus: j.status(entry.Name)}
	if value.Delivery != job.NoDelivery {
		answer.Delivery = &value.Delivery
	}
	return answer, err
}

// recordMessage durably records, before the send, that an ended job gets a message. If a
// process dies or the answer is lost, this PC still polls the job. If at is 0, it
// clears the record after a refusal.
func (j *Jobs) recordMessage(entry job.Job, at job.Millis) error {
	if !entry.State.IsEnded() {
		return nil // an active job is polled anyway
	}
	return j.setMirror(entry.Name, func(mirror *job.Mirror) { mirror.ToldAt = at })
}

// Stop makes the PC of a job end it. It affects no process of this PC (RMT-10). It fails with
// the error of that PC, with Unavailable if it cannot be reached, and with Storage if the
// change cannot be recorded here.
func (j *Jobs) Stop(ctx context.Context, entry job.Job) (api.JobStatus, error) {
	if entry.State.IsEnded() && entry.State != job.Limit {
		return j.status(entry.Name), nil
	}
	value, err := j.ask(ctx, entry, remote.Request{Operation: remote.Control, Control: remote.ControlArgs{Cancel: true}}, nil)
	if err != nil {
		return j.status(entry.Name), err
	}
	if err := j.RecordReport(entry.Name, value, nil); err != nil {
		return j.status(entry.Name), err
	}
	err = j.opts.Registry.Change(func(r *job.Registry) error {
		_, err := r.Update(entry.Name, func(present *job.Job) { present.CancelAsked = !present.State.IsEnded() || present.State == job.Limit })
		return err
	})
	return j.status(entry.Name), err
}

// Decide answers an approval of a job for a caller who may control the job. A pass-up leaves it
// to the owner. It fails with Denied for another caller, with NotFound for an unknown job or
// approval, and otherwise as Answer does.
func (j *Jobs) Decide(ctx context.Context, asker broker.Asker, control job.Control) (api.JobMessaged, error) {
	entry, err := j.opts.Registry.Get(control.Job)
	if err == nil {
		err = j.opts.Registry.MayControl(asker, entry)
	}
	if approval, _ := j.reports.Approval(control.ApprovalID); err == nil && approval.Job != entry.Name {
		err = bridge.Errorf(bridge.NotFound, "%s has no approval %q", control.Job, control.ApprovalID)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	if control.Decision == job.PassUp {
		err = j.passUp(control.ApprovalID)
	} else {
		_, err = j.Answer(ctx, control.ApprovalID, asker.Address.Name, control.Decision, control.Reason)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	done := job.AnswerDone
	return api.JobMessaged{JobStatus: j.status(entry.Name), Delivery: &done}, nil
}

func (j *Jobs) passUp(id string) error {
	approval, _ := j.reports.Approval(id)
	if err := approval.PassUp(bridge.OwnerName, j.opts.Now()); err != nil {
		return err
	}
	j.note(approval)
	return nil
}

func (j *Jobs) note(approval job.Approval) {
	j.reports.Note(approval)
	j.logged("show what "+approval.Job+" asks", j.opts.Registry.Show(approval.Job, func(*job.Job) bool { return false }, true))
}

// Answer sends the answer of an approval, and returns when the runner there has it
// (RMT-16). It returns the current record, even with an error.
func (j *Jobs) Answer(ctx context.Context, id, answerer string, decision job.Decision, reason string) (job.Approval, error) {
	before, _ := j.reports.Approval(id)
	entry, err := j.opts.Registry.Get(before.Job)
	if err != nil {
		return before, err
	}
	after := before
	if err := after.Answer(answerer, decision, reason, j.opts.Now()); err != nil {
		return after, err
	}
	_, err = j.ask(ctx, entry, remote.Request{Operation: remote.Approval, Approval: id, Decision: decision, Reason: reason}, nil)
	switch code := bridge.CodeOf(err); {
	case err == nil:
		err = after.Deliver()
	case code == bridge.Conflict || code == bridge.NotFound: // another answer was faster there, or the approval is gone
		after = before
		_ = after.Withdraw()
	default:
		return before, err
	}
	j.note(after)
	return after, err
}

// Put delivers the open approvals of jobs to their supervisors. It fails with the errors of
// those that cannot be delivered, which the next call repeats.
func (j *Jobs) Put(ctx context.Context) error {
	var failed []error
	for _, entry := range j.opts.Registry.All() {
		if entry.Mirror == nil || entry.State.IsEnded() {
			continue
		}
		caller := j.opts.Supervisors.AnswersTo(entry)
		for _, approval := range j.reports.Approvals(entry.Name) {
			if !approval.IsOpen(j.opts.Now()) || len(approval.PassedUp) > 0 {
				continue
			}
			first, undo := j.reports.First(approval, caller.ID)
			if !first {
				continue
			}
			id := fmt.Sprintf("approval-%x", Digest(entry.Mirror.PC+" "+entry.Name+" "+approval.ID+" "+caller.ID))
			if err := j.opts.Supervisors.Deliver(ctx, entry, id, id, j.opts.Supervisors.Question(entry, approval, caller)); err != nil {
				undo()
				failed = append(failed, fmt.Errorf("%s of %s: %w", approval.ID, entry.Name, err))
			}
		}
	}
	return errors.Join(failed...)
}
