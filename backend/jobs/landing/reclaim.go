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
	usualPollInterval = 10 * time.Minute
	// unchangedFor is how long the worktree of a job without changes waits for the job
	// to continue.
	unchangedFor = time.Hour
	// discardedFor is how long a discarded branch stays.
	discardedFor = 30 * 24 * time.Hour
)

// RequestPoll triggers a poll of the worktrees.
func (r *Repositories) RequestPoll() {
	r.due.Notify()
}

// Run polls each worktree at an interval, and soon after RequestPoll, until ctx ends.
func (r *Repositories) Run(ctx context.Context) {
	tick := time.NewTicker(r.opts.PollInterval)
	defer tick.Stop()
	for {
		for _, entry := range r.opts.Registry.All() {
			if entry.Worktree.IsMade() && r.opts.Git != nil && ctx.Err() == nil {
				r.Settle(ctx, entry.Name)
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

// Settle settles an interrupted finish, removes a worktree that was landed or dropped,
// and measures one that stays (JOB-19).
func (r *Repositories) Settle(ctx context.Context, name string) {
	ctx, give, err := r.take(ctx)
	if err != nil {
		return
	}
	defer give()
	entry, err := r.opts.Registry.Get(name)
	if err != nil {
		return
	}
	if entry.Landing != nil && entry.Landing.State == job.LandingBegun {
		r.settle(ctx, entry)
		if entry, err = r.opts.Registry.Get(name); err != nil {
			return
		}
	}
	result := pollResult{}
	if entry.Worktree.Exists() {
		result.stays = r.reclaim(ctx, entry)
	}
	if result.stays != "" {
		result.bytes, err = gitwork.Size(entry.Worktree.Path)
		r.opts.Failed("measure the worktree of "+name, err)
	}
	r.expire(ctx, entry)
	r.seen.Lock()
	changed := r.found[name] != result
	r.found[name] = result
	r.seen.Unlock()
	if changed {
		r.opts.Registry.Changed()
	}
}

// reclaim removes a worktree whose content exists elsewhere. If the worktree stays, it
// returns the reason.
func (r *Repositories) reclaim(ctx context.Context, entry job.Job) (stays string) {
	discarded := entry.Landing.IsDone(string(gitwork.Discard))
	unchanged := entry.Worktree.BranchHead == entry.Worktree.Base
	idle := r.opts.Now().Sub(entry.FinishedAt.Time())
	switch {
	case !entry.State.IsEnded() || entry.IsUnsent():
		return "the job goes on"
	case unchanged && !discarded && idle < unchangedFor:
		return "it may be continued"
	case entry.Landing.IsDone(string(gitwork.Keep)):
		return "the owner keeps it"
	case entry.Landing.IsDone(string(gitwork.Undo)):
		return "the owner took its landing back"
	}
	defer r.endRemoval(entry.Name) // after the record: from then on the registry has the removal
	git := r.git(entry.Name).Removing(func(moment gitwork.Removal) {
		if moment == gitwork.RemovalBegins {
			r.beginRemoval(entry.Name)
		}
	})
	done, err := git.Reclaim(ctx, gitwork.Recorded(*entry.Worktree), entry.Name, discarded)
	if _, statErr := os.Lstat(entry.Worktree.Path); err != nil && statErr == nil {
		return strings.TrimPrefix(err.Error(), entry.Worktree.Path+" stays: ")
	}
	r.opts.Log.Info("a worktree was taken away; its branch stays", "job", entry.Name, "path", entry.Worktree.Path, "branch", entry.Worktree.Branch, "bytes", done.Bytes, "size", bridge.Size(done.Bytes))
	r.opts.Failed("note that the worktree of "+entry.Name+" was taken away", r.opts.Registry.Update(entry.Name, func(entry *job.Job) error {
		entry.Worktree.ReclaimedAt, entry.Worktree.Bytes = job.Millis(r.opts.Now().UnixMilli()), done.Bytes
		entry.Worktree.BranchHead = cmp.Or(done.Head, entry.Worktree.BranchHead)
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
func (r *Repositories) expire(ctx context.Context, entry job.Job) {
	w := entry.Worktree
	if !entry.Landing.IsDone(string(gitwork.Discard)) || w.Exists() || w.ExpiredAt > 0 || r.opts.Now().Sub(entry.Landing.At.Time()) < discardedFor {
		return
	}
	deleted, err := r.git(entry.Name).Expire(ctx, gitwork.Recorded(*w), entry.Name, entry.Landing.Head)
	if err != nil {
		r.opts.Failed("drop the discarded branch of "+entry.Name, err)
		return
	}
	r.opts.Log.Info("a discarded branch is looked after no more", "job", entry.Name, "branch", w.Branch, "head", entry.Landing.Head, "dropped", deleted)
	r.opts.Failed("note that the branch of "+entry.Name+" is gone", r.opts.Registry.Update(entry.Name, func(entry *job.Job) error {
		entry.Worktree.ExpiredAt = job.Millis(r.opts.Now().UnixMilli())
		return nil
	}))
}

// Worktrees returns the number of worktrees of jobs and their size in bytes.
func (r *Repositories) Worktrees() (count int, bytes int64) {
	r.seen.Lock()
	defer r.seen.Unlock()
	for _, entry := range r.opts.Registry.All() {
		if entry.Worktree.Exists() {
			count++
			bytes += r.found[entry.Name].bytes
		}
	}
	return count, bytes
}

// View returns the view of a job's worktree, or nil if there is none yet.
func (r *Repositories) View(entry job.Job) *api.JobWorktree {
	w := entry.Worktree
	if !w.IsMade() {
		return nil
	}
	r.seen.Lock()
	defer r.seen.Unlock()
	view := &api.JobWorktree{Path: w.Path, Repository: w.RepoRoot, Bytes: w.Bytes, ReclaimedAt: int64(w.ReclaimedAt), Landing: entry.Landing, Landed: standing(entry.Landing), Changed: w.Exists() && w.BranchHead != "" && w.BranchHead != w.Base}
	if w.Exists() {
		view.Bytes, view.Stays = r.found[entry.Name].bytes, r.found[entry.Name].stays
	}
	return view
}
