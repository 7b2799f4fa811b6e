package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/job"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/report"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// The number of ended jobs that `bridge runs` lists, without and with --all.
const (
	fewEnded = 10
	allEnded = 1_000
)

// runsCommand lists jobs (JOB-02).
func runsCommand(a *App) *cobra.Command {
	var all bool
	cmd := a.jsonFlag(&cobra.Command{
		Use: "runs", Short: "List the delegated jobs and what they ask",
		Long:    fmt.Sprintf("Lists the delegated jobs that go on and the last %d that have ended, with what waits for your answer.", fewEnded),
		Example: "  bridge runs\n  bridge runs --all --json", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, home, err := a.dialOwner(cmd.Context(), startsNone)
			if err != nil {
				return err
			}
			defer client.Close()
			args := api.RunsArgs{Ended: fewEnded}
			if all {
				args.Ended = allEnded
			}
			found, err := client.Runs(cmd.Context(), args)
			if err != nil {
				return err
			}
			return a.print(runs.ListOf(found), report.Runs(found, lineOf(home), a.Now()))
		},
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that ended longer ago, archived ones too")
	return cmd
}

// watchCommand follows the log of a run until it ends (JOB-10).
func watchCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "watch RUN", ValidArgsFunction: completing(a, jobNames), Short: "Follow a job's log until it ends", Args: usage.Exact(1),
		Long:    "Follows a job's log until its run ends, and exits with 0 where that has an answer, else with 1. The job goes on when you stop watching.",
		Example: "  bridge watch codex-job-0a1b2c3d",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !job.IsName(args[0]) {
				return &outcome.UsageError{Err: fmt.Errorf("%q names no job: `bridge runs` lists them", args[0])}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, home, err := a.dialOwner(ctx, startsNone)
			if err != nil {
				return err
			}
			defer client.Close()
			return a.watch(ctx, client, home, args[0])
		},
	})
}

// watchPace is the interval of reading the log, far below what a person notices.
const watchPace = 100 * time.Millisecond

func (a *App) watch(ctx context.Context, client *ipc.Client, home config.Home, name string) error {
	var log strings.Builder
	printed := ""
	for next := int64(0); ; {
		piece, err := client.RunLog(ctx, api.RunLogArgs{Job: name, From: next})
		if err != nil {
			return err
		}
		next = piece.Next
		if a.json {
			log.WriteString(piece.Text)
		} else if _, err := fmt.Fprint(a.Stdout, a.markImitations(piece.Text)); err != nil {
			return err
		}
		line := piece.View.Doubt // for a job on another PC
		if wait := piece.View.Wait; wait != nil && wait.For == job.ForApproval {
			line = "it waits for an answer: " + home.CommandLine("bridge", "approve", wait.ID)
		}
		if line != printed && line != "" {
			fmt.Fprintf(a.Stderr, "bridge: %s\n", line)
		}
		printed = line
		switch {
		case next < piece.Size:
			continue
		case piece.View.Status.IsEnded():
			return a.watched(piece.View, log.String())
		case !ipc.Pause(ctx, watchPace):
			return ctx.Err()
		}
	}
}

// markImitations marks each log line that starts like one of Bridge's, if both are
// on one terminal.
func (a *App) markImitations(log string) string {
	if _, isTerminal := terminal.File(a.Stdout); !isTerminal {
		return log
	}
	const own = "bridge: "
	if strings.HasPrefix(log, own) {
		log = "| " + log
	}
	return strings.ReplaceAll(log, "\n"+own, "\n| "+own)
}

// watched reports how the run has ended.
func (a *App) watched(view api.JobView, log string) error {
	if a.json {
		if err := a.print(runs.WatchedOf(view, log), ""); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.Stderr, "bridge: %s is %s\n", view.Job, view.Status)
	}
	if view.Status != job.Finished {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return nil
}
