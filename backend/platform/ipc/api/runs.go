package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// RunsArgs asks for the jobs that go on, and for at most so many that have ended.
type RunsArgs struct {
	Ended int `json:"ended"`
}

// Runs lists them, each kind the newest first, with the questions of those that go on,
// the oldest first.
type Runs struct {
	Jobs      []JobView      `json:"jobs"`
	Approvals []job.Approval `json:"approvals"`
}

// RunLogArgs asks for the log of a run from that byte on.
type RunLogArgs struct {
	Job  string `json:"job"`
	From int64  `json:"from"` // the byte at which the part begins
}

// RunLog is a piece of it, and the job as it was before the piece was read: of one that
// has ended nothing follows after the piece that reaches Size.
type RunLog struct {
	View JobView `json:"view"`
	Text string  `json:"text"`
	Next int64   `json:"next"` // the byte at which the next piece begins
	Size int64   `json:"size"` // of the whole log, in bytes
}

// ApproveArgs is the owner's answer to a question of a job, or to the prompt of a
// session (JOB-07, NED-02).
type ApproveArgs struct {
	Approval string       `json:"approval"`
	Decision job.Decision `json:"decision,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	// Picks answer what the model of a session asks itself. No decision and no reason
	// stands beside them, so that a broker that does not know them refuses.
	Picks []job.Pick `json:"picks,omitempty"`
}

// Check refuses what is more than one answer.
func (a ApproveArgs) Check() error {
	if len(a.Picks) > 0 && (a.Decision != "" || a.Reason != "") {
		return bridge.Errorf(bridge.Invalid, "what is chosen is the whole answer: no decision and no reason go with it")
	}
	return nil
}

// Runs lists jobs: to an agent that asks by the owner's command, its own.
func (c OwnerCalls) Runs(ctx context.Context, args RunsArgs) (Runs, error) {
	return OpRuns.Call(ctx, c.link, args)
}

// RunLog reads on in the log of a run.
func (c OwnerCalls) RunLog(ctx context.Context, args RunLogArgs) (RunLog, error) {
	return OpRunLog.Call(ctx, c.link, args)
}

// Approve answers a question; the record is as it is then. Conflict where it was
// answered, has expired or is gone, Denied within an agent.
func (c OwnerCalls) Approve(ctx context.Context, args ApproveArgs) (job.Approval, error) {
	return OpApprove.Call(ctx, c.link, args)
}
