package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// finishCommand applies or discards the work of a worktree job (JOB-18).
func finishCommand(a *App) *cobra.Command {
	var args api.JobFinishArgs
	var yes bool
	chosen := map[gitwork.Action]*bool{}
	cmd := a.jsonFlag(&cobra.Command{
		Use: "finish RUN --apply|--squash|--merge|--keep|--discard|--undo", ValidArgsFunction: completing(a, jobNames), Short: "Land or drop what a worktree job did", Args: usage.Exact(1),
		Long:    "Lands or drops what a worktree job did, in the main checkout of its repository. It tries first: files that conflict\nare named, a checkout with changes of its own is refused, and nothing is done then. --undo takes the last landing\nback, and later commits stay.",
		Example: "  bridge finish codex-job-0a1b2c3d --squash --dry-run\n  bridge finish codex-job-0a1b2c3d --discard\n  bridge finish codex-job-0a1b2c3d --undo",
		RunE: func(cmd *cobra.Command, names []string) error {
			args.Job = names[0]
			for action, is := range chosen {
				if *is && args.Action != "" {
					return &outcome.UsageError{Err: errors.New("choose one of --apply, --squash, --merge, --keep, --discard and --undo")}
				}
				if *is {
					args.Action = string(action)
				}
			}
			if args.Action == "" {
				return &outcome.UsageError{Err: errors.New("choose --apply, --squash, --merge, --keep, --discard or --undo")}
			}
			return a.finish(cmd.Context(), args, yes)
		},
	})
	flag := func(action gitwork.Action, usage string) {
		chosen[action] = cmd.Flags().Bool(string(action), false, usage)
	}
	flag(gitwork.Apply, "stage its changes, for you to commit")
	flag(gitwork.Squash, "make one commit of it")
	flag(gitwork.Merge, "merge its branch")
	flag(gitwork.Keep, "leave it on its branch; what was discarded comes back")
	flag(gitwork.Discard, "drop it; its branch stays for 30 days as bridge/discarded/RUN")
	flag(gitwork.Undo, "take the last landing back: revert its commit, or unstage its changes")
	cmd.Flags().BoolVar(&args.DryRun, "dry-run", false, "only try: say what conflicts, change nothing")
	cmd.Flags().StringVar(&args.Message, "message", "", "of the commit (default the job's title)")
	cmd.Flags().BoolVar(&yes, "yes", false, "discard without asking")
	return cmd
}

// finish does a dry run, asks before discarding, and executes the action.
func (a *App) finish(ctx context.Context, args api.JobFinishArgs, yes bool) error {
	if err := a.onlyOwner("finish"); err != nil {
		return err
	}
	client, _, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	discards := args.Action == string(gitwork.Discard) && !args.DryRun
	if discards && !yes {
		if err := a.askToDiscard(ctx, client, args); err != nil {
			return err
		}
	}
	finished, err := client.JobFinish(ctx, args)
	if err != nil {
		return err
	}
	if err := a.print(finished, finishedText(finished)+finished.LeftOutText()); err != nil {
		return err
	}
	if len(finished.Conflicts) > 0 {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return nil
}

func (a *App) askToDiscard(ctx context.Context, client *ipc.Client, args api.JobFinishArgs) error {
	args.DryRun = true
	if _, err := client.JobFinish(ctx, args); err != nil {
		return err
	}
	a.explain(fmt.Sprintf("This drops the work of %s and takes its worktree away, with what git ignores in it. The branch stays for 30 days as %s.", args.Job, gitwork.DiscardedBranchOf(args.Job)))
	return a.ask("Discard it?", false)
}

func finishedText(f api.JobFinished) string {
	checkout, branch := bridge.OneLine(f.Checkout), bridge.OneLine(f.Branch)
	if len(f.Conflicts) > 0 {
		var paths []string
		for _, path := range f.Conflicts {
			paths = append(paths, bridge.OneLine(path))
		}
		if f.Action == string(gitwork.Undo) {
			return fmt.Sprintf("Later commits in %s changed what %s landed:\n  %s\n", checkout, f.Job, strings.Join(paths, "\n  "))
		}
		return fmt.Sprintf("The work of %s conflicts with what is in %s:\n  %s\n", f.Job, checkout, strings.Join(paths, "\n  "))
	}
	if !f.Done && f.Action == string(gitwork.Undo) {
		return fmt.Sprintf("The landing of %s can be undone.\n", f.Job)
	}
	if !f.Done {
		return fmt.Sprintf("Nothing conflicts: %s can be done with the work of %s.\n", f.Action, f.Job)
	}
	switch gitwork.Action(f.Action) {
	case gitwork.Apply:
		return fmt.Sprintf("The work of %s is staged in %s: commit it there.\n", f.Job, checkout)
	case gitwork.Undo:
		if f.Commit == "" {
			return fmt.Sprintf("The landing of %s is undone: it can be landed again.\n", f.Job)
		}
		return fmt.Sprintf("The landing of %s is undone in %s, by the commit %s.\n", f.Job, checkout, f.Commit)
	case gitwork.Keep:
		return fmt.Sprintf("The work of %s stays on the branch %s.\n", f.Job, branch)
	case gitwork.Discard:
		return fmt.Sprintf("The work of %s is dropped. For 30 days it is on the branch %s.\n", f.Job, branch)
	default:
		return fmt.Sprintf("The work of %s is in %s, by the commit %s.\n", f.Job, checkout, f.Commit)
	}
}
