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
	// Bytes is its size, or the space freed by its removal. Stays is the reason if
	// it was not removed.
	Bytes       int64             `json:"bytes"`
	Stays       string            `json:"stays,omitempty"`
	ReclaimedAt bridge.UnixMillis `json:"reclaimedAt,omitempty"`
	Landing     *job.Landing      `json:"landing,omitempty"` // the owner's last action on its work
	Landed      *job.Finish       `json:"landed,omitempty"`  // the one that an undo takes back
	Changed     bool              `json:"changed,omitempty"` // it exists and holds commits of the job
}

// JobFinishArgs is the owner's action on the work of a worktree job (JOB-18).
type JobFinishArgs struct {
	Job     string `json:"job"`
	Action  string `json:"action"` // apply, squash, merge, keep, discard, undo
	DryRun  bool   `json:"dryRun,omitempty"`
	Message string `json:"message,omitempty"` // of the commit
}

// JobFinished is the result of the action, or of its dry run.
type JobFinished struct {
	Job       string   `json:"job"`
	Action    string   `json:"action"`
	Conflicts []string `json:"conflicts"` // paths; with conflicts nothing was done
	Done      bool     `json:"done"`
	Commit    string   `json:"commit"` // on the main checkout's branch, or the job's own for keep and discard
	Branch    string   `json:"branch"` // of the job, after the action
	Checkout  string   `json:"checkout"`
	// LeftOut lists, as sentences, worktree content that git cannot include, such
	// as an unreadable folder. That content stays in the worktree.
	LeftOut []string `json:"leftOut,omitempty"`
}

// LeftOutText returns LeftOut as lines for an answer, or "" if all content is included.
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

// JobFinish applies or discards the work of a worktree job, or undoes that. It fails with Denied inside an
// agent, with NotFound for an unknown job, and with Invalid for a job without a worktree. It
// fails with Conflict while the job runs, with Unsupported for a job on another PC, and with
// Storage if git fails.
func (c JobCalls) JobFinish(ctx context.Context, args JobFinishArgs) (JobFinished, error) {
	return OpJobFinish.Call(ctx, c.link, args)
}
