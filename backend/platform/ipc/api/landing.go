package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// JobWorktree is the checkout of a worktree job (JOB-19).
type JobWorktree struct {
	Path       string `json:"path"`
	Repository string `json:"repository"` // its main checkout
	// Bytes are what it holds, or what it gave back when it was taken away; Stays says
	// why it was not.
	Bytes       int64             `json:"bytes"`
	Stays       string            `json:"stays,omitempty"`
	ReclaimedAt bridge.UnixMillis `json:"reclaimedAt,omitempty"`
	Landing     *job.Landing      `json:"landing,omitempty"` // what the owner did last with its work
	Changed     bool              `json:"changed,omitempty"` // it is there and holds commits of the job's own
}

// JobFinishArgs says what the owner wants to be done with the work of a worktree job
// (JOB-18).
type JobFinishArgs struct {
	Job     string `json:"job"`
	Action  string `json:"action"` // apply, squash, merge, keep, discard
	DryRun  bool   `json:"dryRun,omitempty"`
	Message string `json:"message,omitempty"` // of the commit
}

// JobFinished is what came of it, or would.
type JobFinished struct {
	Job       string   `json:"job"`
	Action    string   `json:"action"`
	Conflicts []string `json:"conflicts"` // paths; where there are some nothing was done
	Done      bool     `json:"done"`
	Commit    string   `json:"commit"` // on the main checkout's branch, or the job's own for keep and discard
	Branch    string   `json:"branch"` // of the job, after it
	Checkout  string   `json:"checkout"`
	// LeftOut are sentences about what the worktree holds and git cannot take up, such as a
	// folder that cannot be read: it stays there.
	LeftOut []string `json:"leftOut,omitempty"`
}

// LeftOutText returns LeftOut as lines below an answer; "" where everything is in it.
func (f JobFinished) LeftOutText() string {
	if len(f.LeftOut) == 0 {
		return ""
	}
	lines := "Not in it, and still in the worktree:\n"
	for _, sentence := range f.LeftOut {
		lines += "  " + bridge.OneLine(sentence) + "\n"
	}
	return lines
}

// JobFinish lands or drops what a worktree job did.
func (c JobCalls) JobFinish(ctx context.Context, args JobFinishArgs) (JobFinished, error) {
	return OpJobFinish.Call(ctx, c.link, args)
}
