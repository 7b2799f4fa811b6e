package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/agent/setup"
	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/connect"
)

// agents are the agent CLIs of this PC, to be connected to home.
func (a *App) agents(home config.Home) connect.Agents {
	return connect.Agents{Home: home, Getenv: a.Getenv, Program: a.Program}
}

func (a *App) installCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "install [KIND...]", Short: "Connect the agent CLIs found on this PC, after showing every change",
		Example: "  bridge install\n  bridge install claude codex --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := parseKinds(args)
			if err != nil {
				return err
			}
			return a.install(cmd.Context(), kinds, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "make the changes without asking")
	return cmd
}

func (a *App) uninstallCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "uninstall [KIND...]", Short: "Take back what install changed, exactly", Example: "  bridge uninstall --yes",
		RunE: func(_ *cobra.Command, args []string) error {
			kinds, err := parseKinds(args)
			if err != nil {
				return err
			}
			return a.uninstall(kinds, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "make the changes without asking")
	return cmd
}

func parseKinds(args []string) ([]bridge.AgentKind, error) {
	var kinds []bridge.AgentKind
	for _, arg := range args {
		kind, err := bridge.ParseKind(arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// install plans each kind on its own: what stands in the way of one does not
// keep the others from being connected.
func (a *App) install(ctx context.Context, asked []bridge.AgentKind, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	kinds := asked
	if len(kinds) == 0 {
		kinds = bridge.Kinds()
	}
	var plans []setup.Plan
	failed := false
	for _, kind := range kinds {
		plan, err := a.agents(home).Plan(ctx, kind)
		switch {
		case bridge.CodeOf(err) == bridge.NotFound && len(asked) == 0:
			fmt.Fprintf(a.Stdout, "%s: not found on this PC, skipped\n", kind)
		case err != nil:
			failed = true
			fmt.Fprintf(a.Stderr, "%s: %s\n", kind, err)
		case plan.Empty():
			fmt.Fprintf(a.Stdout, "%s: connected already, nothing to change\n", kind)
			a.showNotes(plan)
		default:
			plans = append(plans, plan)
		}
	}
	return a.carryOut(home, plans, yes, failed, "Connected. Start your agent sessions again so that they load Bridge; `bridge open` shows them.")
}

func (a *App) uninstall(asked []bridge.AgentKind, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	agents := a.agents(home)
	connected, err := agents.Connected()
	if err != nil {
		return err
	}
	var plans []setup.Plan
	failed := false
	for _, kind := range connected {
		if len(asked) > 0 && !slices.Contains(asked, kind) {
			continue
		}
		plan, err := agents.PlanRemoval(kind)
		if err != nil {
			failed = true
			fmt.Fprintf(a.Stderr, "%s: %s\n", kind, err)
			continue
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 && !failed {
		fmt.Fprintln(a.Stdout, "Nothing is connected, so nothing was changed.")
		return nil
	}
	return a.carryOut(home, plans, yes, failed, "Taken back. Your messages and decisions are kept in "+home.Dir()+".")
}

// carryOut shows the plans, asks, and applies them. Nothing is made before the
// answer, the home included.
func (a *App) carryOut(home config.Home, plans []setup.Plan, yes, failed bool, done string) error {
	if len(plans) > 0 {
		for _, plan := range plans {
			a.showPlan(plan)
		}
		if err := a.consent(yes); err != nil {
			return err
		}
	}
	var problems []error
	for _, plan := range plans {
		if err := a.agents(home).Apply(plan); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", plan.Kind, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if len(plans) > 0 {
		fmt.Fprintln(a.Stdout, done)
	}
	if failed {
		return &reported{exitFailed}
	}
	return nil
}

func (a *App) showPlan(plan setup.Plan) {
	fmt.Fprintf(a.Stdout, "%s:\n", plan.Kind)
	for _, edit := range plan.Edits {
		fmt.Fprintf(a.Stdout, "  %-7s %s\n          %s\n", edit.Verb(), edit.Path, edit.Adds)
	}
	a.showNotes(plan)
}

func (a *App) showNotes(plan setup.Plan) {
	notes := plan.Notes
	if plan.Doubt != "" {
		notes = append(slices.Clone(notes), plan.Doubt)
	}
	for _, note := range notes {
		fmt.Fprintf(a.Stdout, "  note: %s\n", note)
	}
}

// consent asks on a terminal. Input that is no terminal never consents by
// itself.
func (a *App) consent(yes bool) error {
	if yes {
		return nil
	}
	input, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(input.Fd())) {
		return bridge.Errorf(bridge.Denied, "nothing was changed: this is no terminal to ask on, so consent needs --yes")
	}
	asking := a.Stdout
	if a.json {
		asking = a.Stderr // standard output is for the one document
	}
	fmt.Fprint(asking, "Make these changes? A copy of every file is kept. [y/N] ")
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return bridge.Errorf(bridge.Denied, "nothing was changed")
	}
	return nil
}
