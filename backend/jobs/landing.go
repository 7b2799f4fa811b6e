package jobs

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/landing"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// landingRegistry gives package landing access to the registry.
type landingRegistry struct{ *core }

func (j landingRegistry) All() []job.Job                    { return j.all() }
func (j landingRegistry) Get(name string) (job.Job, error)  { return j.get(name) }
func (j landingRegistry) Find(name string) (job.Job, error) { return j.find(name) }
func (j landingRegistry) SendFirst(name string) error       { return j.results.sendFirst(name) }
func (j landingRegistry) Changed()                          { j.opts.Broker.Changed() }

// Update changes a job durably. It fails with NotFound for an unknown job, with the error of
// change, and with Storage if the job cannot be recorded.
func (j landingRegistry) Update(name string, change func(*job.Job) error) error {
	return j.change(func(book *job.Registry) error {
		var refused error
		_, err := book.Update(name, func(entry *job.Job) { refused = change(entry) })
		if err == nil {
			err = refused
		}
		return err
	})
}

func newLandings(c *core) *landing.Repositories {
	return landing.New(landing.Options{
		Registry: landingRegistry{c}, Files: c.files, Git: c.opts.Git, PollInterval: c.opts.Timing.Reclaim, Now: c.opts.Now, Log: c.opts.Log,
		Failed: c.logged, Ending: c.tasks.Done(),
	})
}

// Finish lands or drops the work of a worktree job that has ended. It fails with Unsupported
// for a job on another PC, and otherwise as Finish of package landing does.
func (j *supervision) Finish(ctx context.Context, args api.JobFinishArgs) (api.JobFinished, error) {
	if entry, err := j.find(args.Job); err == nil && entry.Remote != nil {
		return api.JobFinished{}, bridge.Errorf(bridge.Unsupported, "the work of %s is on %s: its owner lands or drops it there", entry.Name, entry.Remote.Host)
	}
	return j.landings.Finish(ctx, args)
}

// finishJob is Finish for the owner's command. It refuses a caller that an agent started.
func (j *supervision) finishJob(ctx context.Context, conn *ipc.Conn, args api.JobFinishArgs) (api.JobFinished, error) {
	if err := j.onlyOwner(ctx, conn, "finishes the work of a job"); err != nil {
		return api.JobFinished{}, err
	}
	return j.Finish(ctx, args)
}

// Diff returns the changes that a job made. It fails with NotFound for an unknown job and for
// one outside a git repository. For a job on a paired PC it fails if that PC does not answer.
func (j *views) Diff(ctx context.Context, name string) (landing.Diff, error) {
	if entry, err := j.find(name); err == nil && entry.Mirror != nil {
		return j.paired.Diff(ctx, entry)
	}
	return j.landings.Diff(ctx, name, "")
}

// DiffSince returns the changes of a worktree job since a commit of its branch (PGE-11). It fails
// with NotFound for an unknown job or commit, and with Unsupported for a job without a worktree
// here.
func (j *views) DiffSince(ctx context.Context, name, commit string) (landing.Diff, error) {
	if entry, err := j.find(name); err == nil && entry.Mirror != nil {
		return landing.Diff{}, bridge.Errorf(bridge.Unsupported, "%s is on another PC: Bridge shows all of its changes only", name)
	}
	return j.landings.Diff(ctx, name, commit)
}

// Worktrees returns the number of worktrees of jobs and their size in bytes.
func (j *views) Worktrees() (count int, bytes int64) { return j.landings.Worktrees() }
