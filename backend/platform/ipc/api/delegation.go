package api

import (
	"context"
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// SpawnArgs requests a job (JOB-01).
type SpawnArgs struct {
	Caller
	Kind bridge.AgentKind `json:"kind"`
	// Name is the job's name, made by the caller (job.Name). A repeated request of
	// the same session with the same name returns the same job.
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // of the tool, unchanged
}

// Spawned is a durably recorded job.
type Spawned struct {
	Job     string    `json:"job"`
	Title   string    `json:"title"`
	Status  job.State `json:"status"`
	Workdir string    `json:"workdir"`
	Branch  string    `json:"branch,omitempty"`
	// Doubt reports an uncertainty: whether a paired PC has started the job.
	Doubt string `json:"doubt,omitempty"`
}

// JobArgs names a job of the caller.
type JobArgs struct {
	Caller
	Job string `json:"job"`
}

// JobStatus is the state of a job.
type JobStatus struct {
	Job    string    `json:"job"`
	Status job.State `json:"status"`
}

// JobResult is the result of a job's last run. While the run continues, Ended is
// false, and Wait, Progress and Step describe its progress.
type JobResult struct {
	JobStatus
	Wait     *job.Wait     `json:"wait,omitempty"`
	Progress JobProgress   `json:"progress,omitzero"`
	Step     string        `json:"step,omitempty"`
	Ended    bool          `json:"ended,omitempty"`
	Sent     bool          `json:"sent,omitempty"` // its message is durable
	Message  string        `json:"message,omitempty"`
	Result   string        `json:"result"`
	Error    string        `json:"error,omitempty"`
	Evidence runs.Evidence `json:"evidence"`
}

// JobMessageArgs is a message_subagent call: a message, settings, or an approval's answer.
type JobMessageArgs struct {
	Caller
	// ID identifies the message, so that a repeated request sends it only once.
	ID   string          `json:"id"`
	Args job.MessageArgs `json:"args"`
}

// JobMessaged is the state after the message; Delivery is null if only settings changed.
type JobMessaged struct {
	JobStatus
	Delivery *job.Delivery `json:"delivery"`
}

// JobProgressArgs holds the arguments of report_progress, called inside the job (JOB-20).
type JobProgressArgs struct {
	Caller
	Job   string           `json:"job"`
	Token string           `json:"token"`
	Args  job.ProgressArgs `json:"args"`
}

// HandoffArgs holds the arguments of handoff_subagents (JOB-23).
type HandoffArgs struct {
	Caller
	// ID identifies the hand-off: a repeated request is the same hand-off.
	ID      string      `json:"id"`
	Handoff job.Handoff `json:"handoff"`
}

// HandedOff names the jobs that another session now supervises.
type HandedOff struct {
	Moved []string `json:"moved"`
}

// JobSlotsArgs holds the arguments of max_subagents; Limit 0 only queries.
type JobSlotsArgs struct {
	Caller
	Limit int `json:"limit,omitempty"`
}

// JobSlots holds the number of jobs of a session that may run, run and wait.
type JobSlots struct {
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// JobsResult lists jobs in the order in which they last entered the queue.
type JobsResult struct {
	Jobs []JobView `json:"jobs"`
}

// JobView is a job in a list.
type JobView struct {
	Job       string            `json:"job"`
	By        string            `json:"by"`
	Agent     bridge.AgentKind  `json:"agent"`
	ACPAgent  string            `json:"acpAgent,omitempty"` // its name in config.json, for kind acp
	Title     string            `json:"title"`
	Status    job.State         `json:"status"`
	Wait      *job.Wait         `json:"wait,omitempty"`
	Model     string            `json:"model"`
	Effort    string            `json:"effort"`
	Access    job.Access        `json:"access"`
	Layer     string            `json:"layer"`
	Progress  JobProgress       `json:"progress"`
	Step      string            `json:"step"`
	Workdir   string            `json:"workdir"`
	Branch    string            `json:"branch"`
	Worktree  *JobWorktree      `json:"worktree,omitempty"`
	Session   string            `json:"session"`
	Tokens    int64             `json:"tokens"`
	CostUSD   float64           `json:"costUsd"`
	StartedAt bridge.UnixMillis `json:"startedAt"` // 0 while it is queued
	EndedAt   bridge.UnixMillis `json:"endedAt"`   // 0 while it runs
	Next      string            `json:"next"`      // the first message queued for its next run
	Ended     job.EndReason     `json:"ended,omitempty"`
	Remote    *job.Remote       `json:"remote,omitempty"`
	// Doubt is the reason why the state of a job on a paired PC may be outdated.
	Doubt string `json:"doubt,omitempty"`
}

// JobProgress is a job's own progress report.
type JobProgress struct {
	Percent    *int   `json:"percent"`
	ETAMinutes *int64 `json:"etaMinutes"`
	Note       string `json:"note"`
}

// JobCalls holds the operations on delegated jobs.
type JobCalls struct{ link Link }

// Spawn creates a job and returns after the job is durable. It fails with Invalid for bad
// arguments, and with NotFound if the folder or the model does not exist. It fails with Denied
// if the owner's settings or the caller's own access forbid the job, and with Storage if the
// job cannot be recorded.
func (c JobCalls) Spawn(ctx context.Context, args SpawnArgs) (Spawned, error) {
	return OpSpawn.Call(ctx, c.link, args)
}

// Jobs returns the jobs of the calling session, or all jobs for the owner. It fails with Denied
// before Register, and with Unsupported if jobs are not enabled.
func (c JobCalls) Jobs(ctx context.Context, args Caller) (JobsResult, error) {
	return OpJobs.Call(ctx, c.link, args)
}

// JobResult returns the result of a job, or its progress. It fails with NotFound for an unknown
// job, and with Denied if the caller does not supervise it. If the result cannot be read, Error
// holds the reason.
func (c JobCalls) JobResult(ctx context.Context, args JobArgs) (JobResult, error) {
	return OpJobResult.Call(ctx, c.link, args)
}

// JobMessage sends a message, settings or an answer to a job. It fails with Invalid for bad
// arguments, with NotFound for an unknown job or approval, and with Denied if the caller does
// not supervise the job. It fails with Conflict for an archived job or an answered approval,
// and with Busy while the last result is being sent.
func (c JobCalls) JobMessage(ctx context.Context, args JobMessageArgs) (JobMessaged, error) {
	return OpJobMessage.Call(ctx, c.link, args)
}

// JobCancel cancels a job. It fails with NotFound for an unknown job, with Denied if the caller
// does not supervise it, and with Conflict if it is archived.
func (c JobCalls) JobCancel(ctx context.Context, args JobArgs) (JobStatus, error) {
	return OpJobCancel.Call(ctx, c.link, args)
}

// HandOff makes another session the supervisor of all named jobs, or of none. It fails with
// Denied for a job or a native child and for jobs of others, and with NotFound for an unknown
// session or job. It fails with Unavailable if that session is not connected, and with Invalid
// if it is the caller.
func (c JobCalls) HandOff(ctx context.Context, args HandoffArgs) (HandedOff, error) {
	return OpHandOff.Call(ctx, c.link, args)
}

// JobProgress reports the progress of the calling job. It fails with Denied unless the caller
// is that job and the job runs.
func (c JobCalls) JobProgress(ctx context.Context, args JobProgressArgs) error {
	_, err := OpJobProgress.Call(ctx, c.link, args)
	return err
}

// JobSlots sets or queries how many jobs of the session run at once. It fails with Denied for a
// job or a native child, and with Invalid for a limit outside 1 to 50.
func (c JobCalls) JobSlots(ctx context.Context, args JobSlotsArgs) (JobSlots, error) {
	return OpJobSlots.Call(ctx, c.link, args)
}
