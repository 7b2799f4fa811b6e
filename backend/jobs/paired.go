package jobs

import (
	"context"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// Take records a job for the given caller. If the job uses a worktree, its checkout goes below
// the folder worktrees. It fails with Denied if the owner's settings do not allow the job, and
// with NotFound for an unknown folder or model. It fails with Storage if the job cannot be
// recorded.
func (j *supervision) Take(ctx context.Context, request job.Request, name string, caller job.Caller, worktrees string) (job.Job, error) {
	err := j.checkName(name)
	if err == nil {
		err = j.allowed()
	}
	if err != nil {
		return job.Job{}, err
	}
	return j.take(ctx, request, name, caller, worktrees)
}

// Find returns a job from the registry or the archive. It fails with NotFound for an unknown
// job, and if the archived entry cannot be read.
func (j *views) Find(name string) (job.Job, error) { return j.find(name) }

// All lists every job that is not in the archive.
func (j *views) All() []job.Job { return j.all() }

// Result returns the envelope of a run that has ended. It fails with NotFound if the run has no
// envelope here, and with Storage if the envelope cannot be read.
func (j *views) Result(entry job.Job, run int) (runs.Envelope, error) {
	return j.files.Result(entry, run)
}

// EncodedResult returns Result as JSON, with a long result in full. It fails as Result does.
func (j *views) EncodedResult(entry job.Job, run int) ([]byte, error) {
	return j.files.EncodedResult(entry, run)
}

// Approval returns the current record of an approval. If its run has ended, the error
// is Conflict, with the record.
func (j *approvals) Approval(id string) (job.Approval, error) {
	if err := bridge.CheckID("approval_id", id); err != nil {
		return job.Approval{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, approval, err := j.approvalLocked(id)
	return approval, err
}

// AnswerAs decides an approval for a permitted caller. It fails with Invalid for a bad id, with
// NotFound for an unknown approval, and with Conflict if it was answered or has ended. It fails
// with Denied if the step may leave the sandbox and by is not the owner.
func (j *approvals) AnswerAs(address bridge.Address, id string, decision job.Decision, reason string) error {
	_, err := j.answer(id, broker.Asker{Owner: true, Address: address}, decision, reason)
	return err
}
