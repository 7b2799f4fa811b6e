package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/platform/ipc/api"
)

// approveCommand answers a request of a job or a session, from a terminal that no
// agent started (JOB-07, JOB-11, NED-02).
func approveCommand(a *App) *cobra.Command {
	args := api.ApproveArgs{Decision: job.Allow}
	var deny bool
	cmd := a.jsonFlag(&cobra.Command{
		Use: "approve ID", ValidArgsFunction: completing(a, needIDs(needs.Approval)), Short: "Allow what a job or a session asks, or deny it, or choose an answer", Args: usage.Exact(1),
		Long: "Allows what a job or a session asks, or denies it; the first answer wins. If the agent asks questions, give one\n" +
			"--option or --answer per question, in order; for a single question all of them are its answer. `bridge needs` shows the questions\n" +
			"and the numbers. Within an agent it is refused.",
		Example: "  bridge approve 0198f0a2-0000-7000-8000-000000000001\n" +
			"  bridge approve 0198f0a2-0000-7000-8000-000000000001 --deny --reason \"not that folder\"\n" +
			"  bridge approve 0198f0a2-0000-7000-8000-000000000001 --option 2 --answer \"port 4778\"",
		RunE: func(cmd *cobra.Command, ids []string) error {
			args.Approval = ids[0]
			if deny {
				args.Decision = job.Deny
			}
			if len(args.Picks) > 0 {
				if deny || args.Reason != "" {
					return &outcome.UsageError{Err: errors.New("--option and --answer are the whole answer: neither --deny nor --reason goes with them")}
				}
				args.Decision = ""
			}
			return a.approve(cmd.Context(), args)
		},
	})
	cmd.Flags().BoolVar(&deny, "deny", false, "deny it")
	cmd.Flags().StringVar(&args.Reason, "reason", "", "why, for the job or the session")
	cmd.Flags().Var(pickFlag{&args.Picks, "NUMBER|NAME", func(s string) job.Pick { return job.Pick{Option: s} }}, "option",
		"choose an offered answer; 1,3 where several may be chosen")
	cmd.Flags().Var(pickFlag{&args.Picks, "WORDS", func(s string) job.Pick { return job.Pick{Words: s} }}, "answer", "answer a question in your own words")
	return cmd
}

// pickFlag appends to the picks, so that two flags keep their order.
type pickFlag struct {
	picks *[]job.Pick
	takes string
	pick  func(string) job.Pick
}

func (f pickFlag) String() string { return "" }
func (f pickFlag) Type() string   { return f.takes }

func (f pickFlag) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it must not be empty")
	}
	*f.picks = append(*f.picks, f.pick(s))
	return nil
}

func (a *App) approve(ctx context.Context, args api.ApproveArgs) error {
	if err := a.onlyOwner("approve"); err != nil {
		return err
	}
	client, _, err := a.dialOwner(ctx, startsNone)
	if err != nil {
		return err
	}
	defer client.Close()
	approval, err := client.Approve(ctx, args)
	if err != nil {
		return err
	}
	done := "Allowed"
	switch {
	case len(approval.Answers) > 0:
		var answers []string
		for _, chosen := range approval.Answers {
			answers = append(answers, strings.Join(chosen, ", "))
		}
		done = "Answered " + bridge.VisibleExact(bridge.OneLine(strings.Join(answers, "; ")))
	case approval.Decision == job.Deny:
		done = "Denied"
	}
	return a.print(runs.Answered(approval), fmt.Sprintf("%s: %s is told (%s).\n", done, cmp.Or(approval.Job, approval.Session), approval.State))
}
