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

// Intervals for worktrees.
const (
	usualPace = 10 * time.Minute
	// unchangedFor is how long the worktree of a job without changes waits for the job
	// to continue.
	unchangedFor = time.Hour
	// discardedFor is how long a discarded branch stays.
	discardedFor = 30 * 24 * time.Hour
)

// LookSoon triggers a poll of the worktrees.
func (r *Repositories) LookSoon() {
	r.due.Notify()
}

// Run polls each worktree at an interval, and soon after LookSoon, until ctx ends.
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

// LookAt settles an interrupted finish, removes a worktree that was landed or dropped,
// and measures one that stays (JOB-19).
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

// reclaim removes a worktree whose content exists elsewhere. If the worktree stays, it
// returns the reason.
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
	defer r.endRemoval(one.Name) // after the record: from then on the registry has the removal
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

// beginRemoval records that the worktree of a job is being removed. Meanwhile readers
// of its work read the branch.
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

// removal returns the current number of a job in Repositories.removals.
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

// Worktrees returns the number of worktrees of jobs and their size in bytes.
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

// View returns the view of a job's worktree, or nil if there is none yet.
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
