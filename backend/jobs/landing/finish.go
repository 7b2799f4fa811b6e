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
// (JOB-18). A dry run only tries. It fails with Conflict if files conflict, which the
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
	if err := r.opts.Book.SendFirst(args.Job); err != nil {
		return api.JobFinished{}, err
	}
	ctx, give, err := r.take(ctx)
	if err != nil {
		return api.JobFinished{}, err
	}
	defer give()
	one, err := r.finishable(args.Job)
	if err != nil {
		return api.JobFinished{}, err
	}
	if args.Message == "" {
		args.Message = fmt.Sprintf("%s\n\nBy %s.\n", one.Title, one.Name)
	}
	var finish gitwork.Finish
	if args.DryRun {
		finish, err = r.git(one.Name).Finish(ctx, gitwork.Recorded(*one.Worktree), one.Name, action, args.Message, true)
	} else {
		finish, err = r.finish(ctx, one, action, args.Message)
		defer r.LookSoon()
	}
	if err = inWords(err); err == nil && len(finish.Conflicts) > 0 && !args.DryRun {
		err = one.ConflictsWith(finish.Conflicts)
	}
	if finish.Conflicts == nil {
		finish.Conflicts = []string{}
	}
	return api.JobFinished{
		Job: one.Name, Action: string(action), Conflicts: finish.Conflicts, Done: finish.Done, Commit: finish.Commit,
		Branch: finish.Branch, Checkout: one.Worktree.RepoRoot, LeftOut: finish.LeftOut,
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
	one, err := r.opts.Book.Get(name)
	switch {
	case err != nil:
		return one, err
	case r.opts.Git == nil:
		return one, errNoGit
	case one.Worktree == nil:
		return one, bridge.Errorf(bridge.Invalid, "%s has no worktree of its own: what it did stands in %s", name, one.Workdir)
	case !one.State.IsEnded():
		return one, bridge.Errorf(bridge.Conflict, "%s is %s: its work can be finished when it has ended", name, one.State)
	case !one.Worktree.IsMade():
		return one, bridge.Errorf(bridge.Invalid, "%s was never given its worktree: there is nothing to be finished", name)
	}
	return one, nil
}

// finish makes each step durable before the next one: the begin, the plan, the outcome.
// If a finish is interrupted, settle determines its outcome later.
func (r *Repositories) finish(ctx context.Context, one job.Job, action gitwork.Action, message string) (gitwork.Finish, error) {
	w, before := gitwork.Recorded(*one.Worktree), one.Landing
	landing := job.Landing{Action: string(action), State: job.LandingBegun, Run: one.Run, At: job.Millis(r.opts.Now().UnixMilli())}
	if err := r.record(one.Name, &landing, "", true); err != nil {
		return gitwork.Finish{}, err
	}
	plan, err := r.git(one.Name).Prepare(ctx, w, one.Name, action, message, false)
	if err == nil && len(plan.Conflicts) == 0 {
		landing.Head, landing.Target, landing.Next = plan.Head, plan.Target, plan.Next
		err = r.record(one.Name, &landing, plan.Branch, true)
	}
	if err != nil || len(plan.Conflicts) > 0 {
		r.opts.Failed("note that "+one.Name+" was not finished", r.record(one.Name, before, plan.Branch, false))
		return gitwork.Finish{Action: action, Conflicts: plan.Conflicts, Branch: plan.Branch}, err
	}
	finish, err := r.git(one.Name).CarryOut(ctx, w, one.Name, plan)
	if err != nil {
		one.Landing = &landing
		r.settle(ctx, one)
		return gitwork.Finish{Action: action, Branch: plan.Branch}, err
	}
	landing.State, landing.Commit = job.LandingDone, finish.Commit
	// If the record fails now, the next poll determines the outcome.
	r.opts.Failed("note that "+one.Name+" was finished", r.record(one.Name, &landing, finish.Branch, false))
	r.opts.Log.Info("the work of a job was finished", "job", one.Name, "action", action, "commit", finish.Commit, "branch", finish.Branch, "left out", finish.LeftOut)
	return finish, nil
}

// record durably stores the landing state of a job, and its branch unless that is "".
// If ended is set, it fails with Conflict for a job that is active again.
func (r *Repositories) record(name string, landing *job.Landing, branch string, ended bool) error {
	return r.opts.Book.Update(name, func(one *job.Job) error {
		if ended && !one.State.IsEnded() {
			return bridge.Errorf(bridge.Conflict, "%s goes on: its work can be finished when it has ended", name)
		}
		one.Landing = nil
		if landing != nil {
			kept := *landing // the caller continues to use its own value
			one.Landing = &kept
		}
		if branch != "" {
			one.Worktree.Branch = branch
		}
		if landing != nil && landing.Head != "" {
			one.Worktree.BranchHead = landing.Head
		}
		return nil
	})
}

// settle determines and records the outcome of an interrupted finish. It repeats no step.
func (r *Repositories) settle(ctx context.Context, one job.Job) {
	landing := *one.Landing
	plan := gitwork.Plan{
		Action: gitwork.Action(landing.Action), Branch: one.Worktree.Branch, Head: landing.Head, Target: landing.Target, Next: landing.Next,
	}
	finish, staged, err := r.git(one.Name).Outcome(ctx, gitwork.Recorded(*one.Worktree), one.Name, plan)
	if err != nil {
		r.opts.Failed("see what became of finishing "+one.Name, err)
		return
	}
	switch landing.State = job.LandingFailed; {
	case finish.Done:
		landing.State, landing.Commit = job.LandingDone, finish.Commit
	case staged:
		landing.State = job.LandingStaged
	}
	r.opts.Log.Warn("finishing a job was broken off", "job", one.Name, "action", landing.Action, "state", landing.State)
	r.opts.Failed("note what became of finishing "+one.Name, r.record(one.Name, &landing, finish.Branch, false))
}
