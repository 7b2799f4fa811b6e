package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/dashboard"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// installState is the folder of the home that holds the copies and the manifest
// of what was installed.
func installState(home config.Home) string { return filepath.Join(home.Dir(), "install") }

// installCommandLine is what a person types to connect the agents.
func installCommandLine(home config.Home) string {
	self, err := os.Executable()
	if err != nil {
		self = "bridge"
	}
	line := quoteWord(self) + " install"
	if !home.IsDefault() {
		line += " --home " + quoteWord(home.Dir())
	}
	return line
}

func quoteWord(word string) string {
	if strings.ContainsAny(word, " \t\"'") {
		return `"` + word + `"`
	}
	return word
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
	var plans []agent.Plan
	failed := false
	for _, kind := range kinds {
		plan, err := a.planInstall(ctx, home, kind)
		switch {
		case bridge.CodeOf(err) == bridge.NotFound && len(asked) == 0:
			fmt.Fprintf(a.Stdout, "%s: not found on this PC, skipped\n", kind)
		case err != nil:
			failed = true
			fmt.Fprintf(a.Stderr, "%s: %s\n", kind, err)
		case plan.Empty():
			fmt.Fprintf(a.Stdout, "%s: connected already, nothing to change\n", kind)
		default:
			plans = append(plans, plan)
		}
	}
	return a.carryOut(home, plans, yes, failed, "Connected. Start your agent sessions again so that they load Bridge; `bridge open` shows them.")
}

func (a *App) planInstall(ctx context.Context, home config.Home, kind bridge.AgentKind) (agent.Plan, error) {
	in, err := a.agentInput(home)
	if err != nil {
		return agent.Plan{}, err
	}
	if in.CLI, err = agent.Detect(ctx, kind, a.lookup(home, kind)); err != nil {
		return agent.Plan{}, err
	}
	return agent.PlanInstall(ctx, kind, in)
}

// agentInput says what is connected to what.
func (a *App) agentInput(home config.Home) (agent.Input, error) {
	self, err := os.Executable()
	if err != nil {
		return agent.Input{}, fmt.Errorf("find this program: %w", err)
	}
	userHome, err := os.UserHomeDir()
	if err != nil {
		return agent.Input{}, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
	}
	in := agent.Input{Home: userHome, Env: a.Getenv, Bridge: self, State: installState(home)}
	if !home.IsDefault() {
		in.BridgeHome = home.Dir()
	}
	return in, nil
}

func (a *App) lookup(home config.Home, kind bridge.AgentKind) agent.Lookup {
	where := agent.Lookup{Env: a.Getenv}
	if settings, err := home.Settings(a.Getenv); err == nil {
		where.Configured = settings.Bin(kind)
	}
	return where
}

func (a *App) uninstall(asked []bridge.AgentKind, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	connected, err := agent.Installed(installState(home))
	if err != nil {
		return err
	}
	var plans []agent.Plan
	failed := false
	for _, kind := range connected {
		if len(asked) > 0 && !slices.Contains(asked, kind) {
			continue
		}
		plan, err := agent.PlanRemoval(kind, installState(home))
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
func (a *App) carryOut(home config.Home, plans []agent.Plan, yes, failed bool, done string) error {
	if len(plans) > 0 {
		for _, plan := range plans {
			a.showPlan(plan)
		}
		if err := a.consent(yes); err != nil {
			return err
		}
		if err := home.Ensure(); err != nil {
			return err
		}
	}
	var problems []error
	for _, plan := range plans {
		if err := agent.Apply(plan); err != nil {
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

func (a *App) showPlan(plan agent.Plan) {
	fmt.Fprintf(a.Stdout, "%s:\n", plan.Kind)
	for _, edit := range plan.Edits {
		verb := "changes"
		switch {
		case edit.Before == nil:
			verb = "makes  "
		case edit.After == nil:
			verb = "removes"
		}
		fmt.Fprintf(a.Stdout, "  %s %s\n          %s\n", verb, edit.Path, edit.Adds)
	}
	for _, note := range plan.Notes {
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

// agents tells the page which agent CLIs were found and connected.
func (a *App) agents(ctx context.Context, home config.Home) []dashboard.Agent {
	connected, err := agent.Installed(installState(home))
	if err != nil {
		connected = nil // the page then shows them as not connected
	}
	list := []dashboard.Agent{}
	for _, kind := range bridge.Kinds() {
		found, err := agent.Detect(ctx, kind, a.lookup(home, kind))
		shown := dashboard.Agent{
			Kind: kind, Found: err == nil, Path: found.Path, Version: found.Version,
			Connected: slices.Contains(connected, kind), Detail: found.Note,
		}
		if err != nil {
			shown.Detail = err.Error()
		}
		list = append(list, shown)
	}
	return list
}
