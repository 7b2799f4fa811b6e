package jobs

import (
	"context"
	"errors"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// onlyOwner fails with Denied if an agent started the caller (JOB-11). A process inside
// a job has no owner's connection.
func (j *core) onlyOwner(ctx context.Context, conn *ipc.Conn, does string) error {
	return mux.CheckOwner(ctx, j.opts.Broker, conn, does)
}

// runsOf serves `bridge runs`.
func (j *supervision) runsOf(ctx context.Context, conn *ipc.Conn, args api.RunsArgs) (api.Runs, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, api.Caller{})
	if err != nil {
		return api.Runs{}, err
	}
	runs := api.Runs{Jobs: []api.JobView{}, Approvals: []job.Approval{}}
	visible := map[string]bool{}
	for _, view := range j.views.Recent(max(0, args.Ended)) {
		if entry, err := j.find(view.Job); err == nil && j.mayControl(asker, entry) == nil {
			runs.Jobs = append(runs.Jobs, view)
			visible[view.Job] = true
		}
	}
	for _, approval := range j.approvals.Approvals() {
		if visible[approval.Job] {
			runs.Approvals = append(runs.Approvals, approval.Public())
		}
	}
	return runs, nil
}

// runLog serves `bridge watch`.
func (j *supervision) runLog(ctx context.Context, conn *ipc.Conn, args api.RunLogArgs) (api.RunLog, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, api.Caller{})
	if err != nil {
		return api.RunLog{}, err
	}
	entry, err := j.find(args.Job)
	if err == nil {
		err = j.mayControl(asker, entry)
	}
	if err != nil {
		return api.RunLog{}, err
	}
	view, err := j.views.View(entry.Name) // read before the log, so that the log contains the end
	if err != nil {
		return api.RunLog{}, err
	}
	log, err := j.views.ReadLog(entry.Name, args.From)
	return api.RunLog{View: view, Text: log.Text, Next: log.Next, Size: log.Size}, err
}

// Approve serves `bridge approve`. It fails with Denied inside an agent, and with Invalid for a
// bad decision or for Picks. It fails with NotFound for an unknown approval, and with Conflict
// if the approval was answered or has ended.
func (j *supervision) Approve(ctx context.Context, conn *ipc.Conn, args api.ApproveArgs) (job.Approval, error) {
	if err := j.onlyOwner(ctx, conn, "answers by this command"); err != nil {
		return job.Approval{}, err
	}
	if err := args.Check(); err != nil {
		return job.Approval{}, err
	}
	if len(args.Picks) > 0 {
		if _, err := j.approvals.approval(args.Approval); err != nil {
			return job.Approval{}, err
		}
		return job.Approval{}, bridge.Errorf(bridge.Invalid, "nothing can be chosen of what a job asks: allow or deny it, with your words as the reason")
	}
	decision, err := job.ParseDecision(string(args.Decision))
	if err != nil {
		return job.Approval{}, err
	}
	approval, err := j.approvals.Answer(args.Approval, decision, args.Reason)
	return approval.Public(), err
}

// Say sends a message and settings to a job for a caller who may control it (JOB-05). The id
// identifies the message: a repeat reaches a run only once. It fails with NotFound for an
// unknown job, with Conflict for an archived one, and with Busy while the last result is being
// sent.
func (j *supervision) Say(id string, control job.Control) (api.JobMessaged, error) {
	if entry, err := j.registered(control.Job); err == nil && entry.Mirror != nil {
		return j.paired.Say(j.tasks.Context(), entry, id, control)
	}
	delivery, err := j.deliver(id, control)
	if err != nil {
		return api.JobMessaged{}, err
	}
	answer := api.JobMessaged{JobStatus: j.status(control.Job)}
	if delivery != job.NoDelivery {
		answer.Delivery = &delivery
	}
	return answer, nil
}

// Cancel cancels a job and all jobs below it for the owner (JOB-06, JOB-22). It fails with
// NotFound for an unknown job, with Conflict for an archived one, and with Storage if the
// change cannot be recorded.
func (j *supervision) Cancel(name string) (api.JobStatus, error) {
	entry, err := j.registered(name)
	if err != nil {
		return api.JobStatus{}, err
	}
	if entry.Mirror != nil {
		return j.paired.Stop(j.tasks.Context(), entry)
	}
	ending, err := j.cancelTree(name)
	for _, entry := range ending {
		if err == nil && entry.State.IsEnded() {
			err = j.results.passOn(j.tasks.Context(), entry.Name)
		}
	}
	return j.status(name), err
}

func (j *supervision) cancelTree(name string) (ending []job.Job, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.changeLocked(func(book *job.Registry) (err error) {
		ending, err = book.Cancel(name, j.opts.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, entry := range ending {
		if r := j.runs[entry.Name]; r != nil && entry.State.IsActive() {
			err = errors.Join(err, j.orderLocked(r, cancelOrder))
		}
	}
	return ending, err
}

// registered returns a controllable job. It fails with Conflict for an archived one.
func (j *core) registered(name string) (job.Job, error) {
	entry, err := j.get(name)
	if err == nil {
		return entry, nil
	}
	if _, findErr := j.find(name); findErr != nil {
		return job.Job{}, err
	}
	return job.Job{}, bridge.Errorf(bridge.Conflict, "%s is in the archive: it cannot be continued, only read", name)
}
