package hook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
)

// Program is a process that serves one hook call: `bridge-hook`, or its long form
// `bridge hook`. All fields are required but Note and LongForm.
type Program struct {
	Name    string   // the command's name for people
	Args    []string // KIND EVENT [--home DIR]
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Version string
	// Note is Options.Note for the home in the arguments.
	Note func(ctx context.Context, home config.Home, log *slog.Logger, call session.HookCall) string
	// LongForm returns the path of the bridge program that can read the store, or
	// "". A program without Note passes it a session's start, which is rare.
	LongForm func() string
}

// exitUsage is the exit code for an invalid command line, which no host writes
// (contract: Commands). Every other call ends with 0 or ExitWake.
const exitUsage = 2

// Run serves the call and returns the exit code.
func (p Program) Run(ctx context.Context) int {
	homeFlag, args := splitHome(p.Args)
	if len(args) != 2 {
		fmt.Fprintf(p.Stderr, "usage: %s KIND EVENT [--home DIR]   (JSON on standard input; example: %[1]s claude Stop)\n", p.Name)
		return exitUsage
	}
	kind, err := bridge.ParseKind(args[0])
	if err != nil {
		fmt.Fprintf(p.Stderr, "bridge: %s\n", err)
		return exitUsage
	}
	adapter := hooks.For(kind)
	if p.LongForm != nil && adapter.IsStart(args[1]) {
		if code, done := become(p.LongForm(), append([]string{"hook"}, p.Args...)); done {
			return code
		} // without it the session gets no note, but still gets its mail
	}
	home, err := config.OpenHome(homeFlag, p.Getenv)
	if err != nil {
		drain(ctx, p.Stdin)
		fmt.Fprintln(p.Stdout, "{}")
		return 0
	}
	opts := p.options(home, kind)
	switch task := adapter.TaskOf(args[1]); task {
	case bridge.TaskWaitForMail, bridge.TaskStandByForMail:
		if p.headless(kind) {
			drain(ctx, p.Stdin)
			return 0 // it would keep a run without a person from ending
		}
		return RunWake(ctx, opts, kind, task == bridge.TaskStandByForMail, p.Stdin, p.Stderr)
	case bridge.TaskHoldPrompt:
		if p.headless(kind) { // a run without a person asks in another way
			drain(ctx, p.Stdin)
			return 0
		}
		pid, _ := strconv.Atoi(p.Getenv(bridge.TraitsOf(kind).Hooks.ProcessVariable))
		RunPrompt(ctx, opts, kind, pid, p.Stdin, p.Stdout)
	case bridge.TaskReportPrompt:
		ReportPrompt(ctx, opts, kind, p.Stdin)
	case bridge.TaskReportOutcome:
		if !fileExists(filepath.Join(home.Dir(), config.PromptsOpen)) {
			drain(ctx, p.Stdin)
			return 0
		}
		Run(ctx, opts, kind, args[1], p.Stdin, p.Stdout)
	case bridge.TaskReport:
		Run(ctx, opts, kind, args[1], p.Stdin, p.Stdout)
	}
	return 0
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Main is the complete program `bridge-hook`, which serves one hook call. It
// returns the exit code.
func Main(version string, now func() time.Time) int {
	return Program{
		Name: "bridge-hook", Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: now, Version: version, LongForm: longForm,
	}.Run(context.Background())
}

// longForm returns the path of the console program in the same folder, or "" if it is missing.
func longForm() string {
	own, err := proc.ProgramOr("")
	if err != nil {
		return ""
	}
	return proc.Sibling(own, "bridge-hook", "bridge")
}

// splitHome separates --home, at any position, from the other arguments.
func splitHome(args []string) (home string, rest []string) {
	for i := 0; i < len(args); i++ {
		value, isHome := strings.CutPrefix(args[i], "--home=")
		switch {
		case isHome:
			home = value
		case args[i] == "--home" && i+1 < len(args):
			i++
			home = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return home, rest
}

func (p Program) options(home config.Home, kind bridge.AgentKind) Options {
	log := slog.New(slog.NewTextHandler(lazyLog{home}, nil))
	opts := Options{Home: home, Version: p.Version, CLIDataDir: CLIDataDir(kind, p.Getenv), Now: p.Now, Log: log}
	if p.Note != nil {
		opts.Note = func(ctx context.Context, call session.HookCall) string { return p.Note(ctx, home, log, call) }
	}
	return opts
}

// headless reports whether the CLI runs without a person (claude -p).
func (p Program) headless(kind bridge.AgentKind) bool {
	traits := bridge.TraitsOf(kind).Hooks
	return traits.HeadlessVariable != "" && strings.HasPrefix(p.Getenv(traits.HeadlessVariable), traits.HeadlessPrefix)
}

// CLIDataDir returns the folder of the CLI's own store, derived from the
// environment. A hook started by the CLI inherits the CLI's environment.
func CLIDataDir(kind bridge.AgentKind, getenv func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return hooks.CLIDataDir(kind, home, getenv)
}

// AsksForHelp reports whether args ask for help instead of a hook call.
func AsksForHelp(args []string) bool {
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// lazyLog opens the log only to write a line: most hook calls log nothing, and each
// must be quick.
type lazyLog struct{ home config.Home }

func (l lazyLog) Write(line []byte) (int, error) {
	file, err := os.OpenFile(l.home.Log(), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return len(line), nil // a home that does not exist yet has no log
	}
	defer file.Close()
	return file.Write(line)
}
