// Package landing manages the repositories in which jobs work: where each job works,
// its changes, and how the owner lands them, up to the removal of worktree and branch.
// It never loses a job's work: each step is durable. It checks an interrupted step but
// never repeats it automatically.
package landing

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/lifecycle"
)

// Options configures the repositories. All fields are required but Git and Pace.
type Options struct {
	Registry     Registry
	Files        jobfiles.Files
	Git          *gitwork.Git  // nil if this PC has no Git: then there are no worktrees and no diffs
	PollInterval time.Duration // the interval between polls of the worktrees
	Now          func() time.Time
	Log          *slog.Logger
	// Failed logs an error that no caller waits for, unless err is nil.
	Failed func(what string, err error)
	// Ending is closed when no more work may begin.
	Ending <-chan struct{}
}

// Registry stores the jobs.
type Registry interface {
	// All lists the jobs that are not in the archive.
	All() []job.Job
	// Get returns one of them; Find also searches the archive. The error is NotFound if
	// there is none.
	Get(name string) (job.Job, error)
	Find(name string) (job.Job, error)
	// Update durably changes a job that is not in the archive. If it returns an error,
	// which may be that of change, nothing has changed.
	Update(name string, change func(*job.Job) error) error
	// SendFirst sends the pending result of an ended run. A message that came too late
	// for the run then continues the job.
	SendFirst(name string) error
	// Changed notifies all subscribers.
	Changed()
}

// Repositories manages the repositories of the jobs of one home.
type Repositories struct {
	opts Options
	// turn has capacity one: its holder works in the repositories of ended jobs. A job
	// that continues begins after the holder.
	turn  chan struct{}
	due   lifecycle.Signal      // the worktrees need a poll
	seen  sync.Mutex            // guards found and removals; never held during disk access
	found map[string]pollResult // by job
	// removals counts for each job the begins and ends of a removal of its worktree. If
	// the number is odd, a removal is in progress. seen guards it.
	removals map[string]int
}

// pollResult is the result of the last poll of a worktree.
type pollResult struct {
	bytes int64
	stays string // why it was not removed
}

// New returns the repositories. Run starts the polls.
func New(opts Options) *Repositories {
	if opts.PollInterval == 0 {
		opts.PollInterval = usualPollInterval
	}
	return &Repositories{opts: opts, turn: make(chan struct{}, 1), due: lifecycle.NewSignal(), found: map[string]pollResult{}, removals: map[string]int{}}
}

// Wait waits until no work is in progress in the repositories of ended jobs. A caller that
// begins afterwards sees the result of that work. It fails with Unavailable if the broker is
// ending, and if ctx ends.
func (r *Repositories) Wait(ctx context.Context) error {
	_, give, err := r.take(ctx)
	if err == nil {
		give()
	}
	return err
}

// Close waits for the work that began before Ending was closed.
func (r *Repositories) Close() {
	r.turn <- struct{}{}
	<-r.turn
}

var errNoGit = bridge.Errorf(bridge.Unavailable, "git is not installed: worktrees and diffs of jobs need git 2.38 or newer on the PATH")

// take waits for the turn and returns a context without cancel; give ends the turn. During
// a turn no job begins in a worktree. It fails with Unavailable once Ending is closed.
func (r *Repositories) take(ctx context.Context) (during context.Context, give func(), err error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-r.opts.Ending:
		return nil, nil, bridge.Errorf(bridge.Unavailable, "this broker is ending")
	}
	return context.WithoutCancel(ctx), func() { <-r.turn }, nil
}

// Place checks the folder of a request and plans its worktree, which the runner creates later.
// It fails with NotFound if the folder does not exist or is in no repository. It fails with
// Unavailable without git, and with Invalid if the repository allows no worktree.
func (r *Repositories) Place(ctx context.Context, request job.Request, name, root string) (*job.Worktree, error) {
	info, err := os.Stat(request.Cwd)
	if err != nil || !info.IsDir() {
		return nil, bridge.Errorf(bridge.NotFound, "cwd %s is no folder", request.Cwd)
	}
	if !request.Worktree {
		return nil, nil //nolint:nilnil // it works in that folder
	}
	if r.opts.Git == nil {
		return nil, errNoGit
	}
	repository, err := r.opts.Git.Repository(ctx, request.Cwd)
	if err != nil {
		return nil, err
	}
	if _, err := r.opts.Git.Head(ctx, repository.Top); err != nil {
		return nil, err
	}
	if err := r.opts.Git.CheckWorktrees(ctx, repository); err != nil {
		return nil, err
	}
	planned := &job.Worktree{RepoRoot: repository.Main, Branch: gitwork.BranchOf(name)}
	planned.Path, planned.Cwd, err = repository.WorktreePath(name, root)
	return planned, err
}
