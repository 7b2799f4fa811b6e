package landing

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/ipc/api"
)

// Pauses of the looks at worktrees.
const (
	usualPace = 10 * time.Minute
	// unchangedFor is for how long the worktree of a job that changed nothing waits for
	// the job's being continued.
	unchangedFor = time.Hour
	// discardedFor is for how long a discarded branch stays.
	discardedFor = 30 * 24 * time.Hour
)

// LookSoon has the worktrees looked at.
func (r *Repositories) LookSoon() {
	r.due.Notify()
}

// Run looks at each worktree now and then, and soon where something happened, until
// ctx ends.
func (r *Repositories) Run(ctx context.Context) {
	tick := time.NewTicker(r.opts.Pace)
	defer tick.Stop()
	for {
		for _, one := range r.opts.Book.All() {
			if one.Worktree.IsMade() && r.opts.Git != nil && ctx.Err() == nil {
				r.LookAt(ctx, one.Name)
			}
		}
		select {
		case <-tick.C:
		case <-r.due:
		case <-ctx.Done():
			return
		}
	}
}

// LookAt settles what was broken off, takes away what is landed or dropped, and
// measures what stays (JOB-19).
func (r *Repositories) LookAt(ctx context.Context, name string) {
	ctx, give, err := r.take(ctx)
	if err != nil {
		return
	}
	defer give()
	one, err := r.opts.Book.Get(name)
	if err != nil {
		return
	}
	if one.Landing != nil && one.Landing.State == job.LandingBegun {
		r.settle(ctx, one)
		if one, err = r.opts.Book.Get(name); err != nil {
			return
		}
	}
	there := foundThere{}
	if one.Worktree.IsThere() {
		there.stays = r.reclaim(ctx, one)
	}
	if there.stays != "" {
		there.bytes, err = gitwork.Size(one.Worktree.Path)
		r.opts.Failed("measure the worktree of "+name, err)
	}
	r.expire(ctx, one)
	r.seen.Lock()
	changed := r.found[name] != there
	r.found[name] = there
	r.seen.Unlock()
	if changed {
		r.opts.Book.Changed()
	}
}

// reclaim takes a worktree away that holds nothing which is not elsewhere, and says why
// it stays where it does.
func (r *Repositories) reclaim(ctx context.Context, one job.Job) (stays string) {
	discarded := one.Landing.IsDone(string(gitwork.Discard))
	unchanged := one.Worktree.BranchHead == one.Worktree.Base
	idle := r.opts.Now().Sub(one.FinishedAt.Time())
	switch {
	case !one.State.IsEnded() || one.IsUnsent():
		return "the job goes on"
	case unchanged && !discarded && idle < unchangedFor:
		return "it may be continued"
	case one.Landing.IsDone(string(gitwork.Keep)):
		return "the owner keeps it"
	}
	defer r.endRemoval(one.Name) // after it is noted: from then on the book says it
	git := r.git(one.Name).Removing(func(moment gitwork.Removal) {
		if moment == gitwork.RemovalBegins {
			r.beginRemoval(one.Name)
		}
	})
	done, err := git.Reclaim(ctx, gitwork.Recorded(*one.Worktree), one.Name, discarded)
	if _, statErr := os.Lstat(one.Worktree.Path); err != nil && statErr == nil {
		return strings.TrimPrefix(err.Error(), one.Worktree.Path+" stays: ")
	}
	r.opts.Log.Info("a worktree was taken away; its branch stays", "job", one.Name, "path", one.Worktree.Path, "branch", one.Worktree.Branch, "bytes", done.Bytes, "size", bridge.Size(done.Bytes))
	r.opts.Failed("note that the worktree of "+one.Name+" was taken away", r.opts.Book.Update(one.Name, func(one *job.Job) error {
		one.Worktree.ReclaimedAt, one.Worktree.Bytes = job.Millis(r.opts.Now().UnixMilli()), done.Bytes
		one.Worktree.BranchHead = cmp.Or(done.Head, one.Worktree.BranchHead)
		return nil
	}))
	return ""
}

// beginRemoval notes that the worktree of a job is being taken away: whoever reads its work
// meanwhile reads the branch.
func (r *Repositories) beginRemoval(name string) {
	r.seen.Lock()
	defer r.seen.Unlock()
	r.removals[name] |= 1
}

func (r *Repositories) endRemoval(name string) {
	r.seen.Lock()
	defer r.seen.Unlock()
	r.removals[name] += r.removals[name] & 1
}

// removal is the present number of a job: see Repositories.removals.
func (r *Repositories) removal(name string) int {
	r.seen.Lock()
	defer r.seen.Unlock()
	return r.removals[name]
}

// expire drops the branch of a job that was discarded 30 days ago.
func (r *Repositories) expire(ctx context.Context, one job.Job) {
	w := one.Worktree
	if !one.Landing.IsDone(string(gitwork.Discard)) || w.IsThere() || w.ExpiredAt > 0 || r.opts.Now().Sub(one.Landing.At.Time()) < discardedFor {
		return
	}
	gone, err := r.git(one.Name).Expire(ctx, gitwork.Recorded(*w), one.Name, one.Landing.Head)
	if err != nil {
		r.opts.Failed("drop the discarded branch of "+one.Name, err)
		return
	}
	r.opts.Log.Info("a discarded branch is looked after no more", "job", one.Name, "branch", w.Branch, "head", one.Landing.Head, "dropped", gone)
	r.opts.Failed("note that the branch of "+one.Name+" is gone", r.opts.Book.Update(one.Name, func(one *job.Job) error {
		one.Worktree.ExpiredAt = job.Millis(r.opts.Now().UnixMilli())
		return nil
	}))
}

// Worktrees says how many worktrees of jobs there are, and how many bytes they hold.
func (r *Repositories) Worktrees() (count int, bytes int64) {
	r.seen.Lock()
	defer r.seen.Unlock()
	for _, one := range r.opts.Book.All() {
		if one.Worktree.IsThere() {
			count++
			bytes += r.found[one.Name].bytes
		}
	}
	return count, bytes
}

// View is a job's worktree as it is shown; nil while there is none so far.
func (r *Repositories) View(one job.Job) *api.JobWorktree {
	w := one.Worktree
	if !w.IsMade() {
		return nil
	}
	r.seen.Lock()
	defer r.seen.Unlock()
	view := &api.JobWorktree{Path: w.Path, Repository: w.RepoRoot, Bytes: w.Bytes, ReclaimedAt: int64(w.ReclaimedAt), Landing: one.Landing, Changed: w.IsThere() && w.BranchHead != "" && w.BranchHead != w.Base}
	if w.IsThere() {
		view.Bytes, view.Stays = r.found[one.Name].bytes, r.found[one.Name].stays
	}
	return view
}
