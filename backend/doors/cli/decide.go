package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc/api"
)

// decideFlags are the flags of `bridge decide`.
type decideFlags struct {
	scope    string
	withdraw bool
	reason   string
	from     string
	yes      bool
}

// withdrawnReport is the output of `bridge decide --withdraw-all-from PC --json`.
type withdrawnReport struct {
	From      string              `json:"from"`
	Withdrawn []decision.Revision `json:"withdrawn"`
}

// decideCommand pins, revises and withdraws decisions of the owner (PGE-04, SEC-12).
func decideCommand(a *App) *cobra.Command {
	var flags decideFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use: "decide TOPIC TEXT", Short: "Pin, revise or withdraw a decision of yours",
		Long: "Pins a decision of yours: every session in its scope is told of it. A decision on the same topic is replaced and stays in the history.\n" +
			"With --withdraw nothing is in force on the topic afterwards. Within an agent the command is refused.",
		Example: "  bridge decide database \"We use SQLite\" --scope all\n  bridge decide style \"Tabs\" --scope session:web,api\n" +
			"  bridge decide --withdraw database --reason \"it is too slow\"\n  bridge decide --withdraw-all-from laptop",
		Args: func(cmd *cobra.Command, args []string) error { return flags.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.onlyOwner("decide"); err != nil {
				return err
			}
			switch {
			case flags.from != "":
				return withdrawAllFrom(cmd.Context(), a, flags.from, flags.yes)
			case flags.withdraw:
				return withdraw(cmd.Context(), a, api.WithdrawDecisionArgs{ID: uuid.NewString(), Topic: args[0], Reason: flags.reason})
			}
			return decide(cmd.Context(), a, args[0], args[1], flags.scope)
		},
	})
	cmd.Flags().StringVar(&flags.scope, "scope", "", "for whom: all, project (this folder), an absolute folder, or session:NAME,NAME (default: as the decision that it replaces, else project)")
	cmd.Flags().BoolVar(&flags.withdraw, "withdraw", false, "withdraw the decision on TOPIC")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why you withdraw it; sessions read it")
	cmd.Flags().StringVar(&flags.from, "withdraw-all-from", "", "withdraw every decision in force that came from this PC")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "with --withdraw-all-from: do not ask")
	return cmd
}

// check fails for incompatible flags and arguments.
func (f *decideFlags) check(cmd *cobra.Command, args []string) error {
	changed, all := cmd.Flags().Changed, cmd.Flags().Changed("withdraw-all-from")
	wrong := func(format string, values ...any) error {
		return &outcome.UsageError{Err: fmt.Errorf(format, values...)}
	}
	switch {
	case all && (f.withdraw || changed("reason") || changed("scope") || len(args) > 0):
		return wrong("--withdraw-all-from takes a PC, and no topic, text or flag but --yes and --json")
	case all:
		if err := bridge.CheckPlainName(f.from); err != nil {
			return wrong("--withdraw-all-from takes the name of a PC: %w", err)
		}
		return nil
	case f.yes:
		return wrong("--yes goes with --withdraw-all-from alone")
	case f.withdraw && changed("scope"):
		return wrong("--withdraw takes no --scope: the withdrawal has that of the decision")
	case f.withdraw && len(args) != 1:
		return wrong("--withdraw takes one topic, not %d: it is used as `bridge decide --withdraw TOPIC`", len(args))
	case !f.withdraw && changed("reason"):
		return wrong("--reason goes with --withdraw alone")
	case !f.withdraw && len(args) != 2:
		return usage.Exact(2)(cmd, args)
	}
	return nil
}

func decide(ctx context.Context, a *App, topic, text, scope string) error {
	args := api.DecideArgs{ID: uuid.NewString(), Topic: topic, Text: text}
	var err error
	if args.Scope, err = scopeOf(ctx, a, topic, scope); err != nil {
		return err
	}
	client, _, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	pinned, err := client.PinDecision(ctx, args)
	if err != nil {
		return err
	}
	return a.print(pinned, fmt.Sprintf("Pinned for %s: %s\n%s", bridge.OneLine(pinned.Decision.Scope.Words()), bridge.OneLine(pinned.Decision.Topic), decideText(pinned)))
}

// scopeOf parses --scope. Without it, the scope is that of the current decision on
// the topic, or else the project in the working folder.
func scopeOf(ctx context.Context, a *App, topic, flag string) (*decision.Scope, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working folder: %w", err)
	}
	names, isSessions := strings.CutPrefix(flag, "session:")
	scope := decision.ProjectOf(folder)
	switch {
	case flag == "project":
	case flag == "all":
		scope = decision.AllSessions()
	case isSessions:
		scope = decision.Scope{Sessions: strings.Split(names, ",")}
	case filepath.IsAbs(flag):
		scope = decision.ProjectOf(flag)
	case flag != "":
		return nil, &outcome.UsageError{Err: fmt.Errorf("--scope is all, project, an absolute folder or session:NAME,NAME, not %q", flag)}
	default:
		home, err := a.home()
		if err != nil {
			return nil, err
		}
		name, err := decision.NormalizeTopic(topic)
		if err != nil {
			return nil, err
		}
		report, err := readDecisions(ctx, home, decision.Lookup{Topic: name}, "")
		if err != nil {
			return nil, err
		}
		if len(report.Decisions) > 0 {
			scope = report.Decisions[0].Scope
		}
	}
	return &scope, nil
}

func decideText(result api.DecideResult) string {
	if len(result.DeliveredTo) == 0 {
		return "No session is connected that it is for.\n"
	}
	return "Told: " + bridge.OneLine(strings.Join(result.DeliveredTo, ", ")) + "\n"
}

func withdraw(ctx context.Context, a *App, args api.WithdrawDecisionArgs) error {
	client, _, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	ended, err := client.WithdrawDecision(ctx, args)
	if err != nil {
		return err
	}
	return a.print(ended, fmt.Sprintf("Withdrawn: %s\n%s", bridge.OneLine(ended.Decision.Topic), decideText(ended)))
}

// withdrawAllFrom withdraws the current decisions from a PC. After an interruption,
// another run withdraws the rest.
func withdrawAllFrom(ctx context.Context, a *App, pc string, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	found, err := readDecisions(ctx, home, decision.Lookup{}, pc)
	if err != nil {
		return err
	}
	done := withdrawnReport{From: pc, Withdrawn: []decision.Revision{}}
	found.Unreadable = nil
	list := decisionsText(found, "", pc, a.Now())
	if len(found.Decisions) == 0 {
		return a.print(done, list)
	}
	a.explain(list)
	if err := a.ask(fmt.Sprintf("Withdraw %s?", bridge.Counted(len(found.Decisions), "decision")), yes); err != nil {
		return err
	}
	client, _, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := withdrawEach(ctx, client, found.Decisions, &done); err != nil {
		return fmt.Errorf("%d of %s are withdrawn; run it again for the rest: %w", len(done.Withdrawn), bridge.Counted(len(found.Decisions), "decision"), err)
	}
	text := fmt.Sprintf("You withdrew %s of %s.\n", bridge.Counted(len(done.Withdrawn), "decision"), pc)
	if remaining := len(found.Decisions) - len(done.Withdrawn); remaining > 0 {
		text += fmt.Sprintf("Of %d the topic has changed meanwhile, so Bridge left them as they are.\n", remaining)
	}
	return a.print(done, text)
}

// withdrawer withdraws decisions; *ipc.Client implements it.
type withdrawer interface {
	WithdrawDecision(ctx context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error)
}

// withdrawEach withdraws those of the decisions that are still current.
func withdrawEach(ctx context.Context, client withdrawer, decisions []decision.Revision, done *withdrawnReport) error {
	for _, rev := range decisions {
		ended, err := client.WithdrawDecision(ctx, api.WithdrawDecisionArgs{ID: uuid.NewString(), Topic: rev.Topic, Supersedes: rev.ID})
		var refused *bridge.Error
		if errors.As(err, &refused) && (refused.Code == bridge.NotFound || refused.Code == bridge.Conflict) {
			continue
		}
		if err != nil {
			return err
		}
		done.Withdrawn = append(done.Withdrawn, ended.Decision)
	}
	return nil
}
