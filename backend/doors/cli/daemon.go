package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/agent/connect"
	"bridge/backend/agent/driver/run"
	"bridge/backend/doors/cli/maintenance"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/daemon"
	"bridge/backend/doors/worker"
	"bridge/backend/doors/worker/runjob"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/shellenv"
)

// Daemon returns this build's daemon options, for a program that hosts one:
// everything but host, port and idle time is set. closeLog closes its log.
func (a *App) Daemon(home config.Home) (options daemon.Options, closeLog func()) {
	log, closeLog := worker.OpenLog(home, a.Getenv)
	return a.wired(daemon.Options{}, home, log), closeLog
}

// wired fills in the options that do not depend on the host of the daemon.
func (a *App) wired(options daemon.Options, home config.Home, log *slog.Logger) daemon.Options {
	options.Home, options.Getenv, options.Page, options.Version = home, a.Getenv, a.Page, a.Version
	options.Now, options.Log = a.Now, log
	options.Agents = a.agents(home)
	options.OpenLink = openBrowser
	options.BackUpMessages = func() (<-chan struct{}, error) { return a.startBackup(home) }
	options.Sandbox = a.floor()
	options.Terminal = ownerTerminal(a.Program, a.Now, log)
	options.Prove = maintenance.Prover(a.Program, home, func() []string { return withBridge(options.Terminal.Environ()) })
	options.RunJob = func(folder string) (int, error) {
		started, err := a.startRunner(home, folder, withBridge(options.Terminal.Environ()))
		if err != nil {
			return 0, err
		}
		return started.PID, nil
	}
	return options
}

// floor returns the command that starts a program in the sandbox, or nothing
// without a sandbox. The smaller program starts faster.
func (a *App) floor() []string {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		return nil
	}
	return runjob.Sandbox(siblingProgram(worker.RunnerName, program))
}

// startRunner starts the process that drives one delegated job.
func (a *App) startRunner(home config.Home, folder string, env []string) (*proc.Detached, error) {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		return nil, err
	}
	return proc.StartDetached(proc.Command{
		Path: siblingProgram(worker.RunnerName, program), Args: []string{"run-job", folder, "--home", home.Dir()}, Env: env, Dir: home.Dir(), LogFile: filepath.Join(folder, "runner.log"),
	})
}

// ownerTerminal returns the environment of a new terminal of the owner (JOB-28):
// the login shell's exports after a clean start, without the variables that no job
// gets. It does not inherit this process's environment (RWM-06).
func ownerTerminal(program string, now func() time.Time, log *slog.Logger) *shellenv.Terminal {
	return &shellenv.Terminal{
		Ask: func() ([]string, error) {
			program, err := proc.ProgramOr(program)
			if err != nil {
				return nil, err
			}
			environ, err := shellenv.AskLogin(context.Background(), []string{program, printEnv}, os.Environ())
			return run.Inherited("", environ), err
		},
		Fallback: run.Inherited("", shellenv.Clean(os.Environ())), Now: now, Log: log,
	}
}

// withBridge adds this process's Bridge variables to an environment.
func withBridge(environ []string) []string {
	return append(environ, slices.DeleteFunc(os.Environ(), func(pair string) bool { return !strings.HasPrefix(pair, "BRIDGE_") })...)
}

// printEnv is the command by which the login shell prints its environment.
const printEnv = "print-env"

func printEnvCommand(*App) *cobra.Command {
	return &cobra.Command{
		Use: printEnv + " MARK", Short: "Print the environment between two marks; the broker has the login shell run this", Hidden: true, Args: usage.Exact(1),
		Example: "  bridge print-env 4f1c",
		RunE: func(cmd *cobra.Command, args []string) error {
			return shellenv.Print(cmd.OutOrStdout(), args[0], os.Environ())
		},
	}
}

// agents returns the agent CLIs of this PC, to be connected to home.
func (a *App) agents(home config.Home) connect.Agents {
	return connect.Agents{Home: home, Getenv: a.Getenv, Program: a.Program}
}
