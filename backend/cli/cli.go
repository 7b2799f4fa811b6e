// Package cli is the command line: it reads flags, asks for consent, prints,
// and picks exit codes. What commands do lives below it.
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/cli/outcome"
	"bridge/backend/cli/terminal"
	"bridge/backend/config"
	"bridge/backend/hook"
)

// App is one run of the program: what it takes from outside, and what its commands
// share. Each command is a file of its own.
type App struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Page    fs.FS
	Version string
	// Program is the console binary that agents and workers are told to start; ""
	// for this very program.
	Program string

	homeFlag string
	json     bool
}

// Run runs one command and returns its exit code.
func (a *App) Run(ctx context.Context) int {
	if len(a.Args) > 0 && a.Args[0] == "hook" && !hook.AsksForHelp(a.Args) {
		return a.runHook(ctx, a.Args[1:]) // the hosts wait for it: no flag parser is built
	}
	a.Stdout, a.Stderr = terminal.Writer(a.Stdout), terminal.Writer(a.Stderr)
	root := a.root()
	// Set before anything is parsed: a command line that is wrong answers as JSON
	// too when it asks for it.
	a.json = slices.Contains(a.Args, "--json")
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		outcome.Report(terminal.JSON(a.Stdout), a.Stderr, "bridge", a.json, err)
	}
	return outcome.Code(err)
}

// Commands returns the root command with all others below it, for the reference.
func (a *App) Commands() *cobra.Command { return a.root() }

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "bridge",
		Short:         "A local message bridge between coding-agent sessions",
		Long:          "Bridge lets the coding-agent sessions on this PC talk to each other, pins your decisions so that every\nsession has them, and shows you all of it in a local dashboard.",
		Example:       "  bridge install        connect the agent CLIs found on this PC\n  bridge open           show the dashboard\n  bridge demo           look at a live dashboard without any agent",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.homeFlag, "home", "", "folder that holds everything Bridge stores (default $BRIDGE_HOME, else ~/.bridge)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &outcome.UsageError{Err: err} })
	root.AddCommand(
		serveCommand(a), openCommand(a), urlCommand(a), statusCommand(a), sendCommand(a), decisionsCommand(a), decideCommand(a), finishCommand(a),
		pairCommand(a), linkCommand(a), unlinkCommand(a), joinCommand(a), leaveCommand(a), teamCommand(a), networkCommand(a), sendFileCommand(a), filesCommand(a),
		needsCommand(a), answerCommand(a), rulesCommand(a), runsCommand(a), watchCommand(a), approveCommand(a),
		installCommand(a), uninstallCommand(a), demoCommand(a), demoAgentCommand(a), mcpCommand(a), hookCommand(a),
		pluginCommand(a), doctorCommand(a), serviceCommand(a), retireCommand(a), versionCommand(a), backupWorkerCommand(a),
		runJobCommand(a), sandboxExecCommand(a), printEnvCommand(a), checkHomeCommand(a),
	)
	return root
}

// noArgs refuses arguments. On the root an argument is a command that there is
// not.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasParent():
		return &outcome.UsageError{Err: fmt.Errorf("there is no command %q: bridge --help lists them", args[0])}
	default:
		return &outcome.UsageError{Err: fmt.Errorf("%s takes no arguments, but was given %q", cmd.CommandPath(), args[0])}
	}
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return &outcome.UsageError{Err: fmt.Errorf("%d arguments are too few or too many: it is used as `%s`", len(args), cmd.UseLine())}
	}
}

// home is the home for a command that may write there.
func (a *App) home() (config.Home, error) { return config.OpenHome(a.homeFlag, a.Getenv) }

// jsonFlag adds --json to a command that prints data.
func (a *App) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document")
	return cmd
}

// print writes value as JSON with --json, else as text.
func (a *App) print(value any, text string) error {
	if a.json {
		encoder := json.NewEncoder(terminal.JSON(a.Stdout))
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	_, err := fmt.Fprint(a.Stdout, text)
	return err
}
