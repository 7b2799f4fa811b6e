package jobs

import (
	"context"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// Take records a job for the given caller. If the job uses a worktree, its checkout
// goes below the folder worktrees.
func (j *asks) Take(ctx context.Context, request job.Request, name string, by job.Caller, worktrees string) (job.Job, error) {
	err := j.checkName(name)
	if err == nil {
		err = j.allowed()
	}
	if err != nil {
		return job.Job{}, err
	}
	return j.take(ctx, request, name, by, worktrees)
}

// Find returns a job from the registry or the archive.
func (j *views) Find(name string) (job.Job, error) { return j.find(name) }

// All lists every job that is not in the archive.
func (j *views) All() []job.Job { return j.all() }

// Result returns the envelope of a run that has ended.
func (j *views) Result(one job.Job, run int) (runs.Envelope, error) {
	return j.files.Result(one, run)
}

// EncodedResult returns Result as JSON, with a long result in full.
func (j *views) EncodedResult(one job.Job, run int) ([]byte, error) {
	return j.files.EncodedResult(one, run)
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

// AnswerAs decides an approval for a permitted caller.
func (j *approvals) AnswerAs(by bridge.Address, id string, decision job.Decision, reason string) error {
	_, err := j.answer(id, broker.Asker{Owner: true, Address: by}, decision, reason)
	return err
}
