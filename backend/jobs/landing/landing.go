// Package landing has the repositories in which jobs work: where each works, what it
// changed, and what the owner does with that, to the end of its worktree and branch.
// Nothing of a job's work is lost here: what is done goes to the disk step by step, and
// what was broken off is looked at and never repeated by itself.
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

// Options says what it works with. All fields are required but Git and Pace.
type Options struct {
	Book  Book
	Files jobfiles.Files
	Git   *gitwork.Git  // nil where this PC has none: then there are no worktrees and no diffs
	Pace  time.Duration // how often worktrees are looked at
	Now   func() time.Time
	Log   *slog.Logger
	// Failed says what nobody waits for, unless err is nil.
	Failed func(what string, err error)
	// Ending is closed when nothing more is to be begun.
	Ending <-chan struct{}
}

// Book is the registry of jobs.
type Book interface {
	// All lists the jobs that are not in the archive.
	All() []job.Job
	// Get returns one of them, Find also one in the archive. The error is NotFound where
	// there is none.
	Get(name string) (job.Job, error)
	Find(name string) (job.Job, error)
	// Update changes a job that is not in the archive, and makes that durable. Beside an
	// error, which may be that of change, nothing has changed.
	Update(name string, change func(*job.Job) error) error
	// SendFirst has the result of an ended run go out: words that came too late for it
	// continue the job.
	SendFirst(name string) error
	// Changed tells everyone who watches.
	Changed()
}

// Repositories are those of the jobs of one home.
type Repositories struct {
	opts Options
	// turn has room for one: who works in the repositories of ended jobs. A job that
	// goes on begins after him.
	turn  chan struct{}
	due   lifecycle.Signal      // worktrees are to be looked at
	seen  sync.Mutex            // guards found; it is held over no disk
	found map[string]foundThere // by job
	// removals counts for each job how often its worktree began or ceased to be taken away:
	// an odd number says that it is. seen guards it.
	removals map[string]int
}

// foundThere is what the last look at a worktree found.
type foundThere struct {
	bytes int64
	stays string // why it was not taken away
}

// New returns them. Run begins to look after them.
func New(opts Options) *Repositories {
	if opts.Pace == 0 {
		opts.Pace = usualPace
	}
	return &Repositories{opts: opts, turn: make(chan struct{}, 1), due: lifecycle.NewSignal(), found: map[string]foundThere{}, removals: map[string]int{}}
}

// Wait waits until nobody works in the repositories of ended jobs: whoever begins after
// it finds what was done.
func (r *Repositories) Wait(ctx context.Context) error {
	_, give, err := r.take(ctx)
	if err == nil {
		give()
	}
	return err
}

// Close waits for the end of what was begun before Ending was closed.
func (r *Repositories) Close() {
	r.turn <- struct{}{}
	<-r.turn
}

var errNoGit = bridge.Errorf(bridge.Unavailable, "git is not installed: worktrees and diffs of jobs need git 2.38 or newer on the PATH")

// take waits for the turn; give ends it. While somebody has it no job begins in a
// worktree. What is done in it is not broken off by whoever asked for it.
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

// Place checks where a job is to work. A worktree is only planned here: its runner
// makes it.
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
	planned.Path, planned.Cwd, err = repository.PlaceOf(name, root)
	return planned, err
}
