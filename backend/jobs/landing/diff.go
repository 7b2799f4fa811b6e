package landing

import (
	"cmp"
	"context"
	"os"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
)

// Diff is the set of changes that a job made since its start.
type Diff struct {
	Base, Head string // commits
	Files      []gitwork.FileChange
}

// Diff compares the files at a job's start with those at its end (JOB-18). For an active job it
// uses the current files. It fails with NotFound if the job did not work in a repository.
// Unless since is "", it compares with that commit of a worktree job instead (PGE-11). Then it
// fails with Unsupported for another job, and with NotFound if the job's branch has not that commit.
func (r *Repositories) Diff(ctx context.Context, name, since string) (Diff, error) {
	diff, err := r.diff(ctx, name, since)
	return diff, inWords(err)
}

func (r *Repositories) diff(ctx context.Context, name, since string) (Diff, error) {
	entry, err := r.opts.Registry.Find(name)
	if err != nil {
		return Diff{}, err
	}
	if r.opts.Git == nil {
		return Diff{}, errNoGit
	}
	if since != "" {
		if err := r.checkSince(ctx, entry, since); err != nil {
			return Diff{}, err
		}
	}
	if entry.Worktree.IsMade() {
		return r.worktreeDiff(ctx, entry, since)
	}
	state, err := r.opts.Files.ReadState(name)
	if err != nil || state.BaseTree == "" {
		return Diff{}, bridge.Errorf(bridge.NotFound, "%s has not worked in a git repository: its changes are unknown", name)
	}
	git, top, err := r.checkoutOf(ctx, entry.Workdir, state.Checkout)
	if err != nil {
		return Diff{}, err
	}
	diff := Diff{Base: state.Base, Head: r.evidenceHead(name)}
	if state.HeadTree != "" && !state.State.IsActive() {
		diff.Files, err = git.DiffTrees(ctx, top, state.BaseTree, state.HeadTree)
		return diff, err
	}
	head, err := git.Head(ctx, top)
	if err != nil {
		return Diff{}, err
	}
	diff.Head = head.Commit
	diff.Files, err = git.Diff(ctx, top, state.BaseTree)
	return diff, err
}

// checkSince fails unless since is a commit of the job's branch.
func (r *Repositories) checkSince(ctx context.Context, entry job.Job, since string) error {
	if !entry.Worktree.IsMade() {
		return bridge.Errorf(bridge.Unsupported, "%s has no worktree: Bridge knows no earlier state of its changes", entry.Name)
	}
	has, err := gitwork.Recorded(*entry.Worktree).Contains(ctx, r.git(entry.Name), entry.Worktree.BranchHead, since)
	if err == nil && !has {
		err = bridge.Errorf(bridge.NotFound, "the branch of %s has no commit %s: look at all of its changes", entry.Name, since)
	}
	return err
}

// checkoutOf returns a git for a job's checkout, and the checkout's top folder. It uses
// the runner's record, or else finds the checkout now.
func (r *Repositories) checkoutOf(ctx context.Context, folder string, recorded *job.Checkout) (*gitwork.Git, string, error) {
	if recorded != nil {
		return r.opts.Git.Pin(recorded), recorded.Top, nil
	}
	repository, err := r.opts.Git.Repository(ctx, folder)
	return r.opts.Git, repository.Top, err
}

// git returns a git that uses the runner's record of the job's worktree from before the start.
func (r *Repositories) git(name string) *gitwork.Git {
	state, err := r.opts.Files.ReadState(name)
	if err != nil { // an older or archived job: the repository's own filters are switched off
		return r.opts.Git
	}
	return r.opts.Git.Pin(state.Checkout)
}

// evidenceHead returns the commit at the end of a job's last run with an envelope, or "".
func (r *Repositories) evidenceHead(name string) string {
	envelope, _, err := r.opts.Files.ReadEnvelope(name)
	if err != nil {
		return ""
	}
	return envelope.Evidence.Head
}

// worktreeDiff reads the checkout if it exists, otherwise the branch. If the checkout
// is removed or incomplete during the read, the result is not used.
func (r *Repositories) worktreeDiff(ctx context.Context, entry job.Job, since string) (Diff, error) {
	before := r.removal(entry.Name)
	if before&1 == 1 || entry.State == job.Starting || !r.exists(entry) {
		return r.branchDiff(ctx, entry, since)
	}
	diff, err := r.checkoutDiff(ctx, entry, since)
	if r.removal(entry.Name) == before && (err == nil || r.isWhole(ctx, entry)) {
		return diff, err
	}
	if now, bookErr := r.opts.Registry.Find(entry.Name); bookErr == nil && now.Worktree.IsMade() {
		entry = now
	}
	return r.branchDiff(ctx, entry, since)
}

func (r *Repositories) exists(entry job.Job) bool {
	_, err := os.Lstat(entry.Worktree.Path)
	return err == nil
}

// isWhole reports whether a job's checkout exists and belongs to the job.
func (r *Repositories) isWhole(ctx context.Context, entry job.Job) bool {
	return r.exists(entry) && r.git(entry.Name).Prove(ctx, gitwork.Recorded(*entry.Worktree)) == nil
}

func (r *Repositories) checkoutDiff(ctx context.Context, entry job.Job, since string) (diff Diff, err error) {
	w, git := entry.Worktree, r.git(entry.Name)
	head, err := git.Head(ctx, w.Path)
	if err != nil {
		return Diff{}, err
	}
	diff = Diff{Base: cmp.Or(since, w.Base), Head: head.Commit}
	diff.Files, err = git.Diff(ctx, w.Path, cmp.Or(since, w.BaseTree))
	return diff, err
}

// branchDiff reads the branch of a job at the commit where its worktree was last parked.
func (r *Repositories) branchDiff(ctx context.Context, entry job.Job, since string) (diff Diff, err error) {
	w := entry.Worktree
	diff = Diff{Base: cmp.Or(since, w.Base), Head: w.BranchHead}
	diff.Files, err = r.opts.Git.DiffTrees(ctx, w.RepoRoot, cmp.Or(since, w.BaseTree), w.BranchHead)
	return diff, err
}
