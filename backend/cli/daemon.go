package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"bridge/backend/agent/driver/run"
	"bridge/backend/config"
	"bridge/backend/connect"
	"bridge/backend/daemon"
	"bridge/backend/proc"
	"bridge/backend/shellenv"
	"bridge/backend/worker"
	"bridge/backend/worker/runjob"
)

// Daemon is how this build puts a daemon together, for a program that hosts one
// itself: everything but host, port and idle time is set. closeLog ends its log.
func (a *App) Daemon(home config.Home) (options daemon.Options, closeLog func()) {
	log, closeLog := worker.OpenLog(home, a.Getenv)
	return a.wired(daemon.Options{}, home, log), closeLog
}

// wired fills in what is the same whoever hosts the daemon.
func (a *App) wired(options daemon.Options, home config.Home, log *slog.Logger) daemon.Options {
	options.Home, options.Getenv, options.Page, options.Version = home, a.Getenv, a.Page, a.Version
	options.Now, options.Log = a.Now, log
	options.Agents = a.agents(home)
	options.OpenLink = openBrowser
	options.BackUpMessages = func() (<-chan struct{}, error) { return a.startBackup(home) }
	options.Sandbox = a.floor()
	environment := sync.OnceValue(func() []string { return ownerEnvironment(a.Program, log) })
	options.RunJob = func(folder string) (int, error) {
		started, err := a.startRunner(home, folder, environment())
		if err != nil {
			return 0, err
		}
		return started.PID, nil
	}
	return options
}

// floor is the command that puts the floor under a program; empty where there is none. The
// smaller program starts faster.
func (a *App) floor() []string {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		return nil
	}
	return runjob.Sandbox(besideOr(worker.RunnerName, program))
}

// startRunner starts the process that drives one delegated job.
func (a *App) startRunner(home config.Home, folder string, env []string) (*proc.Detached, error) {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		return nil, err
	}
	return proc.StartDetached(proc.Command{
		Path: besideOr(worker.RunnerName, program), Args: []string{"run-job", folder, "--home", home.Dir()}, Env: env, Dir: home.Dir(), LogFile: filepath.Join(folder, "runner.log"),
	})
}

// ownerEnvironment is the environment of the owner's own terminal, with what this process
// was told of Bridge (JOB-28). Where the login shell does not tell it, it is that of this
// process, and the log says why.
func ownerEnvironment(program string, log *slog.Logger) []string {
	bridges := slices.DeleteFunc(os.Environ(), func(pair string) bool { return !strings.HasPrefix(pair, "BRIDGE_") })
	own := run.Inherited("", os.Environ())
	program, err := proc.ProgramOr(program)
	if err == nil {
		home, _ := os.UserHomeDir() // the shell says what it thinks of none
		var told []string
		told, err = shellenv.Ask(context.Background(), shellenv.Question{
			Shell: shellenv.Login(os.Getenv), Program: []string{program, printEnv}, Environ: own, Home: home,
		})
		if err == nil {
			log.Info("jobs work in the environment of the login shell", "variables", len(told))
			return append(told, bridges...)
		}
	}
	log.Warn("jobs work in the environment that this program was started with", "err", err)
	return append(own, bridges...)
}

// printEnv is the command by which the login shell tells its environment.
const printEnv = "print-env"

func printEnvCommand(*App) *cobra.Command {
	return &cobra.Command{
		Use: printEnv + " MARK", Short: "Print the environment between two marks; the broker has the login shell run this", Hidden: true, Args: exactArgs(1),
		Example: "  bridge print-env 4f1c",
		RunE: func(cmd *cobra.Command, args []string) error {
			return shellenv.Print(cmd.OutOrStdout(), args[0], os.Environ())
		},
	}
}

// agents are the agent CLIs of this PC, to be connected to home.
func (a *App) agents(home config.Home) connect.Agents {
	return connect.Agents{Home: home, Getenv: a.Getenv, Program: a.Program}
}
