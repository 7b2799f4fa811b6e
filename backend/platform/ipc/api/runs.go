package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// RunsArgs requests the running jobs and at most Ended ended jobs.
type RunsArgs struct {
	Ended int `json:"ended"`
}

// Runs lists the jobs, running and ended ones each newest first. Approvals are the
// questions of the running ones, oldest first.
type Runs struct {
	Jobs      []JobView      `json:"jobs"`
	Approvals []job.Approval `json:"approvals"`
}

// RunLogArgs requests the log of a run from a byte offset.
type RunLogArgs struct {
	Job  string `json:"job"`
	From int64  `json:"from"` // the first byte of the part
}

// RunLog is a part of a log, and the job before the part was read. If the job has
// ended, the part that reaches Size is the last one.
type RunLog struct {
	View JobView `json:"view"`
	Text string  `json:"text"`
	Next int64   `json:"next"` // the first byte of the next part
	Size int64   `json:"size"` // of the whole log, in bytes
}

// ApproveArgs is the owner's answer to a question of a job, or to the prompt of a
// session (JOB-07, NED-02).
type ApproveArgs struct {
	Approval string       `json:"approval"`
	Decision job.Decision `json:"decision,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	// Picks answers a question of a session's model. Decision and Reason are then
	// empty, so that a broker without Picks refuses the request.
	Picks []job.Pick `json:"picks,omitempty"`
}

// Check fails with Invalid if Picks comes together with a decision or a reason.
func (a ApproveArgs) Check() error {
	if len(a.Picks) > 0 && (a.Decision != "" || a.Reason != "") {
		return bridge.Errorf(bridge.Invalid, "what is chosen is the whole answer: no decision and no reason go with it")
	}
	return nil
}

// Runs lists all jobs, or the agent's own if an agent runs the owner's command. It fails with
// Unsupported if jobs are not enabled.
func (c OwnerCalls) Runs(ctx context.Context, args RunsArgs) (Runs, error) {
	return OpRuns.Call(ctx, c.link, args)
}

// RunLog reads the next part of a run's log. It fails with NotFound for an unknown job, and
// with Invalid if From is beyond the log. It fails with Denied if an agent asks that does not
// supervise the job.
func (c OwnerCalls) RunLog(ctx context.Context, args RunLogArgs) (RunLog, error) {
	return OpRunLog.Call(ctx, c.link, args)
}

// Approve answers a question and returns its record. It fails with Conflict if it
// was answered, has expired or is gone, and with Denied inside an agent.
func (c OwnerCalls) Approve(ctx context.Context, args ApproveArgs) (job.Approval, error) {
	return OpApprove.Call(ctx, c.link, args)
}
