package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"bridge/backend/config"
	"bridge/backend/connect"
	"bridge/backend/daemon"
	"bridge/backend/proc"
)

// Daemon is how this build puts a daemon together, for a program that hosts one
// itself: everything but host, port and idle time is set. closeLog ends its log.
func (a *App) Daemon(home config.Home) (options daemon.Options, closeLog func()) {
	log, closeLog := a.openLog(home)
	return a.wired(daemon.Options{}, home, log), closeLog
}

// wired fills in what is the same whoever hosts the daemon.
func (a *App) wired(options daemon.Options, home config.Home, log *slog.Logger) daemon.Options {
	options.Home, options.Getenv, options.Page, options.Version = home, a.Getenv, a.Page, a.Version
	options.Now, options.Log = a.Now, log
	options.Agents = a.agents(home)
	options.OpenLink = openBrowser
	options.BackUpMessages = func() (<-chan struct{}, error) { return a.startBackup(home) }
	options.RunJob = func(folder string) (int, error) {
		started, err := a.startRunner(home, folder)
		if err != nil {
			return 0, err
		}
		return started.PID, nil
	}
	return options
}

// startRunner starts the process that drives one delegated job.
func (a *App) startRunner(home config.Home, folder string) (started *proc.Detached, err error) {
	program := a.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	return proc.StartDetached(proc.Command{
		Path: program, Args: []string{"run-job", folder, "--home", home.Dir()}, Dir: home.Dir(), LogFile: filepath.Join(folder, "runner.log"),
	})
}

// agents are the agent CLIs of this PC, to be connected to home.
func (a *App) agents(home config.Home) connect.Agents {
	return connect.Agents{Home: home, Getenv: a.Getenv, Program: a.Program}
}
