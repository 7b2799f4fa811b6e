package api

import (
	"context"
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// SpawnArgs asks for a job (JOB-01).
type SpawnArgs struct {
	Caller
	Kind bridge.AgentKind `json:"kind"`
	// Name is the job's, made by whoever asks (job.Name): asked for a second time by
	// the same session, it is the same job.
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // of the tool, as they were given
}

// Spawned is a job that is durable.
type Spawned struct {
	Job     string    `json:"job"`
	Title   string    `json:"title"`
	Status  job.State `json:"status"`
	Workdir string    `json:"workdir"`
	Branch  string    `json:"branch,omitempty"`
	// Doubt says what is not certain: whether a paired PC has started it.
	Doubt string `json:"doubt,omitempty"`
}

// JobArgs names a job of the caller's.
type JobArgs struct {
	Caller
	Job string `json:"job"`
}

// JobStatus is where a job is.
type JobStatus struct {
	Job    string    `json:"job"`
	Status job.State `json:"status"`
}

// JobResult is what came of a job's last run; Ended is false while it goes on, and
// then Wait, Progress and Step tell how far it is.
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

// JobMessageArgs is message_subagent: words, settings, or an answer to an approval.
type JobMessageArgs struct {
	Caller
	// ID names the words, so that they are said once however often it is asked.
	ID   string          `json:"id"`
	Args job.MessageArgs `json:"args"`
}

// JobMessaged says what becomes of it; Delivery is null where only settings changed.
type JobMessaged struct {
	JobStatus
	Delivery *job.Delivery `json:"delivery"`
}

// JobProgressArgs is report_progress, from within the job (JOB-20).
type JobProgressArgs struct {
	Caller
	Job   string           `json:"job"`
	Token string           `json:"token"`
	Args  job.ProgressArgs `json:"args"`
}

// HandoffArgs is handoff_subagents (JOB-23).
type HandoffArgs struct {
	Caller
	// ID names the hand-off: asked for a second time it is the same one.
	ID      string      `json:"id"`
	Handoff job.Handoff `json:"handoff"`
}

// HandedOff names the jobs that another session supervises from now on.
type HandedOff struct {
	Moved []string `json:"moved"`
}

// JobSlotsArgs is max_subagents; a Limit of 0 only asks.
type JobSlotsArgs struct {
	Caller
	Limit int `json:"limit,omitempty"`
}

// JobSlots says how many jobs of a session run at once.
type JobSlots struct {
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// JobsResult lists jobs, in the order in which they came in line last.
type JobsResult struct {
	Jobs []JobView `json:"jobs"`
}

// JobView is a job as lists show it.
type JobView struct {
	Job       string            `json:"job"`
	By        string            `json:"by"`
	Agent     bridge.AgentKind  `json:"agent"`
	ACPAgent  string            `json:"acpAgent,omitempty"` // its name in config.json, of kind acp
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
	StartedAt bridge.UnixMillis `json:"startedAt"` // 0 while it stands in line
	EndedAt   bridge.UnixMillis `json:"endedAt"`   // 0 while it goes on
	Next      string            `json:"next"`      // the first words that wait for its next run
	Ended     job.EndReason     `json:"ended,omitempty"`
	Remote    *job.Remote       `json:"remote,omitempty"`
	// Doubt says why this may not be the present state of a job on a paired PC.
	Doubt string `json:"doubt,omitempty"`
}

// JobProgress is how far a job says that it is.
type JobProgress struct {
	Percent    *int   `json:"percent"`
	ETAMinutes *int64 `json:"etaMinutes"`
	Note       string `json:"note"`
}

// JobCalls are the operations about delegated jobs.
type JobCalls struct{ link Link }

// Spawn has a job recorded durably before it returns.
func (c JobCalls) Spawn(ctx context.Context, args SpawnArgs) (Spawned, error) {
	return OpSpawn.Call(ctx, c.link, args)
}

// Jobs lists the jobs of the calling session, or all of them for the owner.
func (c JobCalls) Jobs(ctx context.Context, args Caller) (JobsResult, error) {
	return OpJobs.Call(ctx, c.link, args)
}

// JobResult tells what came of a job.
func (c JobCalls) JobResult(ctx context.Context, args JobArgs) (JobResult, error) {
	return OpJobResult.Call(ctx, c.link, args)
}

// JobMessage says something to a job.
func (c JobCalls) JobMessage(ctx context.Context, args JobMessageArgs) (JobMessaged, error) {
	return OpJobMessage.Call(ctx, c.link, args)
}

// JobCancel ends a job.
func (c JobCalls) JobCancel(ctx context.Context, args JobArgs) (JobStatus, error) {
	return OpJobCancel.Call(ctx, c.link, args)
}

// HandOff makes another session the supervisor of jobs, all of them or none.
func (c JobCalls) HandOff(ctx context.Context, args HandoffArgs) (HandedOff, error) {
	return OpHandOff.Call(ctx, c.link, args)
}

// JobProgress says how far the calling job is.
func (c JobCalls) JobProgress(ctx context.Context, args JobProgressArgs) error {
	_, err := OpJobProgress.Call(ctx, c.link, args)
	return err
}

// JobSlots sets how many jobs of the session run at once, or only tells.
func (c JobCalls) JobSlots(ctx context.Context, args JobSlotsArgs) (JobSlots, error) {
	return OpJobSlots.Call(ctx, c.link, args)
}
