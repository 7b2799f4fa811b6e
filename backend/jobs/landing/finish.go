package landing

import (
	"context"
	"errors"
	"fmt"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/ipc/api"
)

// Finish lands or drops the work of a worktree job that has ended, for the owner alone
// (JOB-18), or takes the last landing back (PGE-11). A dry run only tries. It fails with Conflict if files conflict, which the
// answer then lists. It also does so if the main checkout has changes, or while the job
// is active. Then nothing has changed.
func (r *Repositories) Finish(ctx context.Context, args api.JobFinishArgs) (api.JobFinished, error) {
	action, err := gitwork.ParseAction(args.Action)
	if err == nil && args.Message != "" {
		err = bridge.CheckText("message", args.Message, maxCommitChars)
	}
	if err != nil {
		return api.JobFinished{}, err
	}
	if err := r.opts.Registry.SendFirst(args.Job); err != nil {
		return api.JobFinished{}, err
	}
	ctx, give, err := r.take(ctx)
	if err != nil {
		return api.JobFinished{}, err
	}
	defer give()
	entry, err := r.settled(ctx, args.Job)
	if err != nil {
		return api.JobFinished{}, err
	}
	if args.Message == "" && action != gitwork.Undo {
		args.Message = fmt.Sprintf("%s\n\nBy %s.\n", entry.Title, entry.Name)
	}
	var finish gitwork.Finish
	if args.DryRun {
		var plan gitwork.Plan
		plan, err = r.prepare(ctx, entry, action, args.Message, true)
		finish = plan.Tried()
	} else {
		finish, err = r.finish(ctx, entry, action, args.Message)
		defer r.RequestPoll()
	}
	if err = inWords(err); err == nil && len(finish.Conflicts) > 0 && !args.DryRun {
		err = entry.ConflictsWith(finish.Conflicts)
		if action == gitwork.Undo {
			err = entry.UndoConflictsWith(finish.Conflicts)
		}
	}
	if finish.Conflicts == nil {
		finish.Conflicts = []string{}
	}
	return api.JobFinished{
		Job: entry.Name, Action: string(action), Conflicts: finish.Conflicts, Done: finish.Done, Commit: finish.Commit,
		Branch: finish.Branch, Checkout: entry.Worktree.RepoRoot, LeftOut: finish.LeftOut,
	}, err
}

// inWords converts an error of git into a Storage error with a sentence.
func inWords(err error) error {
	var known *bridge.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return bridge.Errorf(bridge.Storage, "git could not do it: %w", err)
}

// maxCommitChars is the length limit of a commit message.
const maxCommitChars = 20_000

// finishable returns a job whose work can be finished now.
func (r *Repositories) finishable(name string) (job.Job, error) {
	entry, err := r.opts.Registry.Get(name)
	switch {
	case err != nil:
		return entry, err
	case r.opts.Git == nil:
		return entry, errNoGit
	case entry.Worktree == nil:
		return entry, bridge.Errorf(bridge.Invalid, "%s has no worktree of its own: what it did stands in %s", name, entry.Workdir)
	case !entry.State.IsEnded():
		return entry, bridge.Errorf(bridge.Conflict, "%s is %s: its work can be finished when it has ended", name, entry.State)
	case !entry.Worktree.IsMade():
		return entry, bridge.Errorf(bridge.Invalid, "%s was never given its worktree: there is nothing to be finished", name)
	}
	return entry, nil
}

// settled returns a job whose work can be finished, after the outcome of an interrupted finish
// is known. It fails with Conflict if that cannot be determined now.
func (r *Repositories) settled(ctx context.Context, name string) (job.Job, error) {
	entry, err := r.finishable(name)
	if err != nil || entry.Landing == nil || entry.Landing.State != job.LandingBegun {
		return entry, err
	}
	r.settle(ctx, entry)
	entry, err = r.finishable(name)
	if err == nil && entry.Landing.State == job.LandingBegun {
		err = bridge.Errorf(bridge.Conflict, "%s is being finished just now: say it again in a moment", name)
	}
	return entry, err
}

// prepare plans a finish.
func (r *Repositories) prepare(ctx context.Context, entry job.Job, action gitwork.Action, message string, dry bool) (gitwork.Plan, error) {
	w := gitwork.Recorded(*entry.Worktree)
	if action != gitwork.Undo {
		w.Undone = undoneMerge(entry.Landing)
		return r.git(entry.Name).Prepare(ctx, w, entry.Name, action, message, dry)
	}
	last := standing(entry.Landing)
	if last == nil {
		return gitwork.Plan{}, bridge.Errorf(bridge.Conflict, "no work of %s has landed that could be taken back", entry.Name)
	}
	landed := gitwork.Landed{Action: gitwork.Action(last.Action), Head: last.Head, Target: last.Target, Next: last.Next, On: last.On}
	if last.State == job.LandingStaged {
		landed.Action = gitwork.Apply
	}
	return landed.Prepare(ctx, r.git(entry.Name), w, entry.Name, message, dry)
}

// finish makes each step durable before the next one: the begin, the plan, the outcome.
// If a finish is interrupted, settle determines its outcome later.
func (r *Repositories) finish(ctx context.Context, entry job.Job, action gitwork.Action, message string) (gitwork.Finish, error) {
	w, before := gitwork.Recorded(*entry.Worktree), entry.Landing
	landing := job.Landing{Earlier: history(before), Finish: job.Finish{
		Action: string(action), State: job.LandingBegun, Run: entry.Run, At: job.Millis(r.opts.Now().UnixMilli()),
	}}
	if err := r.record(entry.Name, &landing, "", true); err != nil {
		return gitwork.Finish{}, err
	}
	plan, err := r.prepare(ctx, entry, action, message, false)
	if err == nil && len(plan.Conflicts) == 0 {
		landing.Head, landing.Target, landing.Next = plan.Head, plan.Target, plan.Next
		landing.On, landing.Of = plan.On, string(plan.Of)
		err = r.record(entry.Name, &landing, plan.Branch, true)
	}
	if err != nil || len(plan.Conflicts) > 0 {
		r.opts.Failed("note that "+entry.Name+" was not finished", r.record(entry.Name, before, plan.Branch, false))
		return gitwork.Finish{Action: action, Conflicts: plan.Conflicts, Branch: plan.Branch}, err
	}
	finish, err := r.git(entry.Name).CarryOut(ctx, w, entry.Name, plan)
	if err != nil {
		entry.Landing = &landing
		r.settle(ctx, entry)
		return gitwork.Finish{Action: action, Branch: plan.Branch}, err
	}
	landing.State, landing.Commit = job.LandingDone, finish.Commit
	// If the record fails now, the next poll determines the outcome.
	r.opts.Failed("note that "+entry.Name+" was finished", r.record(entry.Name, &landing, finish.Branch, false))
	r.opts.Log.Info("the work of a job was finished", "job", entry.Name, "action", action, "commit", finish.Commit, "branch", finish.Branch, "left out", finish.LeftOut)
	return finish, nil
}

// record durably stores the landing state of a job, and its branch unless that is "".
// If ended is set, it fails with Conflict for a job that is active again.
func (r *Repositories) record(name string, landing *job.Landing, branch string, ended bool) error {
	return r.opts.Registry.Update(name, func(entry *job.Job) error {
		if ended && !entry.State.IsEnded() {
			return bridge.Errorf(bridge.Conflict, "%s goes on: its work can be finished when it has ended", name)
		}
		entry.Landing = nil
		if landing != nil {
			stored := *landing // the caller continues to use its own value
			entry.Landing = &stored
		}
		if branch != "" {
			entry.Worktree.Branch = branch
		}
		// Most undos know an older head; that of a discard parks the work anew.
		isOlder := landing != nil && landing.Action == string(gitwork.Undo) && landing.Of != string(gitwork.Discard)
		if landing != nil && landing.Head != "" && !isOlder {
			entry.Worktree.BranchHead = landing.Head
		}
		return nil
	})
}

// settle determines and records the outcome of an interrupted finish. It repeats no step.
func (r *Repositories) settle(ctx context.Context, entry job.Job) {
	landing := *entry.Landing
	plan := gitwork.Plan{
		Action: gitwork.Action(landing.Action), Branch: entry.Worktree.Branch, Head: landing.Head, Target: landing.Target, Next: landing.Next,
		On: landing.On, Of: gitwork.Action(landing.Of),
	}
	finish, staged, err := r.git(entry.Name).Outcome(ctx, gitwork.Recorded(*entry.Worktree), entry.Name, plan)
	if err != nil {
		r.opts.Failed("see what became of finishing "+entry.Name, err)
		return
	}
	switch landing.State = job.LandingFailed; {
	case finish.Done:
		landing.State, landing.Commit = job.LandingDone, finish.Commit
	case staged:
		landing.State = job.LandingStaged
	}
	r.opts.Log.Warn("finishing a job was broken off", "job", entry.Name, "action", landing.Action, "state", landing.State)
	r.opts.Failed("note what became of finishing "+entry.Name, r.record(entry.Name, &landing, finish.Branch, false))
}
