package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/platform/config"
)

// installer connects and disconnects the agent CLIs of this PC.
type installer struct {
	*App
	yes    bool
	dryRun bool
	wanted setup.Choices
}

func installCommand(a *App) *cobra.Command {
	i := installer{App: a}
	var jobs, deny bool
	cmd := &cobra.Command{
		Use: "install [KIND...]", ValidArgsFunction: completing(a, kindNames), Short: "Connect the agent CLIs found on this PC, after showing every change",
		Example: "  bridge install\n  bridge install --dry-run\n  bridge install claude codex --yes\n  bridge install --allow-jobs\n  bridge install --deny-owner-commands",
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := parseKinds(args)
			if err == nil {
				err = a.onlyOwner("install")
			}
			if err != nil {
				return err
			}
			if cmd.Flags().Changed(allowJobs) {
				i.wanted.Jobs = &jobs
			}
			if cmd.Flags().Changed(denyOwnerCommands) {
				i.wanted.DenyOwner = &deny
			}
			return i.install(cmd.Context(), kinds)
		},
	}
	cmd.Flags().BoolVar(&i.yes, "yes", false, "make the changes without asking")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "show the changes and make none")
	cmd.Flags().BoolVar(&jobs, allowJobs, false, "let sessions start and steer agents on this PC without asking you; --"+allowJobs+"=false takes that back")
	cmd.Flags().BoolVar(&deny, denyOwnerCommands, false, "have the agents' own rules deny your commands and Bridge's files to sessions; --"+denyOwnerCommands+"=false takes the rules out")
	return cmd
}

// allowJobs is the flag that lets sessions start agents without a question (JOB-26).
const allowJobs = "allow-jobs"

// denyOwnerCommands is the flag that makes the agents' own rules block the owner's
// commands (SEC-07).
const denyOwnerCommands = "deny-owner-commands"

func uninstallCommand(a *App) *cobra.Command {
	i := installer{App: a}
	cmd := &cobra.Command{
		Use: "uninstall [KIND...]", ValidArgsFunction: completing(a, kindNames), Short: "Take back what install changed, exactly", Example: "  bridge uninstall --yes",
		RunE: func(_ *cobra.Command, args []string) error {
			kinds, err := parseKinds(args)
			if err == nil {
				err = a.onlyOwner("uninstall")
			}
			if err != nil {
				return err
			}
			return i.uninstall(kinds)
		},
	}
	cmd.Flags().BoolVar(&i.yes, "yes", false, "make the changes without asking")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "show the changes and make none")
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

// install plans each kind separately: an obstacle for one does not prevent
// connecting the others.
func (i installer) install(ctx context.Context, requested []bridge.AgentKind) error {
	home, err := i.home()
	if err != nil {
		return err
	}
	kinds := requested
	if len(kinds) == 0 {
		kinds = bridge.Kinds()
	}
	var plans []setup.Plan
	failed, found := false, len(kinds)
	for _, kind := range kinds {
		plan, err := i.agents(home).Plan(ctx, kind, i.wanted)
		switch {
		case bridge.CodeOf(err) == bridge.NotFound && len(requested) == 0:
			found--
			fmt.Fprintf(i.Stdout, "%s: not found on this PC, skipped\n", kind)
		case err != nil:
			failed = true
			fmt.Fprintf(i.Stderr, "%s: %s\n", kind, err)
		case plan.Empty():
			fmt.Fprintf(i.Stdout, "%s: connected already, nothing to change\n", kind)
			i.showNotes(plan)
		default:
			plans = append(plans, plan)
		}
	}
	if found == 0 {
		fmt.Fprintf(i.Stdout, "No agent was found, so nothing is connected. If one is not on PATH, name its program: %s\n",
			home.CommandLine("bridge", "config", "set", "agents.claude.bin", "/path/to/claude"))
	}
	return i.carryOut(home, plans, failed, "Connected. Start your agent sessions again so that they load Bridge; `bridge open` shows them.")
}

func (i installer) uninstall(kinds []bridge.AgentKind) error {
	home, err := i.home()
	if err != nil {
		return err
	}
	agents := i.agents(home)
	connected, err := agents.Connected()
	if err != nil {
		return err
	}
	var plans []setup.Plan
	failed := false
	for _, kind := range connected {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		plan, err := agents.PlanRemoval(kind)
		if err != nil {
			failed = true
			fmt.Fprintf(i.Stderr, "%s: %s\n", kind, err)
			continue
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 && !failed {
		fmt.Fprintln(i.Stdout, "Nothing is connected, so nothing was changed.")
		return nil
	}
	return i.carryOut(home, plans, failed, "Taken back. Your messages and decisions are kept in "+home.Dir()+".")
}

// carryOut shows the plans, asks, and applies them. It creates nothing before the
// answer, not even the home.
func (i installer) carryOut(home config.Home, plans []setup.Plan, failed bool, done string) error {
	if len(plans) > 0 {
		for _, plan := range plans {
			i.showPlan(plan)
		}
		if i.dryRun {
			fmt.Fprintln(i.Stdout, "Nothing was changed: this was a dry run.")
			return nil
		}
		if err := i.consent(i.yes); err != nil {
			return err
		}
	}
	var problems []error
	for _, plan := range plans {
		if err := i.agents(home).Apply(plan); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", plan.Kind, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if len(plans) > 0 {
		fmt.Fprintln(i.Stdout, done)
	}
	if failed {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return nil
}

func (i installer) showPlan(plan setup.Plan) {
	fmt.Fprintf(i.Stdout, "%s:\n", plan.Kind)
	for _, edit := range plan.Edits {
		fmt.Fprintf(i.Stdout, "  %-7s %s\n          %s\n", edit.Verb(), bridge.OneLine(edit.Path), bridge.OneLine(edit.Adds))
	}
	i.showNotes(plan)
}

func (i installer) showNotes(plan setup.Plan) {
	notes := plan.Notes
	if plan.Doubt != "" {
		notes = append(slices.Clone(notes), plan.Doubt)
	}
	for _, note := range notes {
		fmt.Fprintf(i.Stdout, "  note: %s\n", note)
	}
}
