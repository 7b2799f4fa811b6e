// Package cli is the command line: it reads flags, asks for consent, prints,
// and picks exit codes. What commands do lives below it.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/hook"
	"bridge/backend/host"
)

// Exit codes (contract: Commands).
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitNoOne   = 4
)

// App is one run of the program with everything it takes from outside.
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
	if len(a.Args) > 0 && a.Args[0] == "hook" && !asksForHelp(a.Args) {
		return a.runHook(ctx, a.Args[1:]) // the hosts wait for it: no flag parser is built
	}
	root := a.root()
	// Set before anything is parsed: a command line that is wrong answers as JSON
	// too when it asks for it.
	a.json = slices.Contains(a.Args, "--json")
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	a.report(err)
	return ExitCode(err)
}

// report prints one sentence, as the one JSON document with --json.
func (a *App) report(err error) {
	var done *reported
	if errors.As(err, &done) {
		return
	}
	if a.json {
		_ = json.NewEncoder(a.Stdout).Encode(map[string]string{"error": oneLine(err)}) // nowhere left to say it
		return
	}
	fmt.Fprintf(a.Stderr, "bridge: %s\n", oneLine(err))
}

// oneLine writes several errors after one another, for people.
func oneLine(err error) string {
	return strings.NewReplacer("\n", "; ", context.Canceled.Error(), "it was interrupted").Replace(err.Error())
}

// reported is a failure whose details are printed already.
type reported struct{ code int }

func (r *reported) Error() string { return "failed" }

// ExitCode is the one place where an error picks its exit code.
func ExitCode(err error) int {
	var done *reported
	var usage *usageError
	switch {
	case errors.As(err, &done):
		return done.code
	case errors.As(err, &usage):
		return exitUsage
	}
	switch bridge.CodeOf(err) {
	case bridge.Invalid:
		return exitUsage
	case bridge.Denied:
		return exitRefused
	case bridge.Unavailable:
		return exitNoOne
	default:
		return exitFailed
	}
}

// usageError is a wrong command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(
		a.serveCommand(), a.openCommand(), a.urlCommand(), a.statusCommand(), a.sendCommand(),
		a.installCommand(), a.uninstallCommand(), a.demoCommand(), a.mcpCommand(), a.hookCommand(),
		a.pluginCommand(), a.doctorCommand(), a.serviceCommand(), a.retireCommand(), a.versionCommand(), a.backupWorkerCommand(),
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
		return &usageError{fmt.Errorf("there is no command %q: bridge --help lists them", args[0])}
	default:
		return &usageError{fmt.Errorf("%s takes no arguments, but was given %q", cmd.CommandPath(), args[0])}
	}
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return &usageError{fmt.Errorf("%d arguments are too few or too many: it is used as `%s`", len(args), cmd.UseLine())}
	}
}

func (a *App) home() (config.Home, error) { return config.ResolveHome(a.homeFlag, a.Getenv) }

// jsonFlag adds --json to a command that prints data.
func (a *App) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document")
	return cmd
}

// print writes value as JSON with --json, else as text.
func (a *App) print(value any, text string) error {
	if a.json {
		encoder := json.NewEncoder(a.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	_, err := fmt.Fprint(a.Stdout, text)
	return err
}

// versionInfo is what `bridge version` prints.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (a *App) versionCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Example: "  bridge version --json", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{Version: a.Version, Commit: commit(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			return a.print(v, fmt.Sprintf("bridge %s (commit %s, %s, %s)\n", v.Version, v.Commit, v.Go, v.System))
		},
	})
}

// commit is the revision that this binary was built from, where known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}

// hookCommand is here for `bridge --help`; Run serves it before any flag parser
// is built.
func (a *App) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hook KIND EVENT", Short: "Serve one hook call of an agent CLI: JSON in, JSON out",
		Example: "  bridge hook claude PostToolUse < event.json", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asksForHelp(args) {
				return cmd.Help()
			}
			if code := a.runHook(cmd.Context(), args); code != exitDone {
				return &reported{code}
			}
			return nil
		},
	}
}

func asksForHelp(args []string) bool {
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// runHook never fails the host: only a command line that no host writes does.
func (a *App) runHook(ctx context.Context, args []string) int {
	var words []string
	for i := 0; i < len(args); i++ {
		value, isHome := strings.CutPrefix(args[i], "--home=")
		switch {
		case isHome:
			a.homeFlag = value
		case args[i] == "--home" && i+1 < len(args):
			i++
			a.homeFlag = args[i]
		default:
			words = append(words, args[i])
		}
	}
	if len(words) != 2 {
		fmt.Fprintln(a.Stderr, "usage: bridge hook KIND EVENT [--home DIR]   (JSON on standard input; example: bridge hook claude Stop)")
		return exitUsage
	}
	kind, err := bridge.ParseKind(words[0])
	if err != nil {
		fmt.Fprintf(a.Stderr, "bridge: %s\n", err)
		return exitUsage
	}
	home, err := a.home()
	if err != nil {
		fmt.Fprintln(a.Stdout, "{}")
		return exitDone
	}
	if kind == bridge.Claude && (words[1] == host.WakeEvent || words[1] == host.WakeStandbyEvent) {
		if a.headless() {
			return exitDone // it would keep a run without a person from ending
		}
		return hook.RunWake(ctx, a.hookOptions(home, kind), words[1] == host.WakeStandbyEvent, a.Stdin, a.Stderr)
	}
	hook.Run(ctx, a.hookOptions(home, kind), kind, words[1], a.Stdin, a.Stdout)
	return exitDone
}

// headless reports whether claude runs without a person (claude -p).
func (a *App) headless() bool { return strings.HasPrefix(a.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk") }

func (a *App) hookOptions(home config.Home, kind bridge.AgentKind) hook.Options {
	return hook.Options{Home: home, Version: a.Version, Store: a.storeOf(kind), Now: a.Now, Log: slog.New(slog.NewTextHandler(lazyLog{home}, nil))}
}

// storeOf is the folder of the CLI's own store, as the environment tells: it is
// the CLI's where the CLI started us.
func (a *App) storeOf(kind bridge.AgentKind) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return host.StoreFolder(kind, home, a.Getenv)
}

// lazyLog opens the log only when a line is written: most hook calls say
// nothing, and each must be quick.
type lazyLog struct{ home config.Home }

func (l lazyLog) Write(line []byte) (int, error) {
	file, err := os.OpenFile(l.home.Log(), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return len(line), nil // a home that is not there yet has no log
	}
	defer file.Close()
	return file.Write(line)
}
