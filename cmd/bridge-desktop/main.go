//go:build desktop && (linux || windows)

// Command bridge-desktop is Bridge on a desktop: the dashboard in a window of its
// own, an icon in the tray, and the broker where none runs yet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bridge/app"
	"bridge/backend/doors/cli"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/platform/config"
	"bridge/frontend"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() {
	hidden := flag.Bool("hidden", false, "start in the tray, without showing the window")
	folder := flag.String("home", "", "folder that holds everything Bridge stores (default $BRIDGE_HOME, else ~/.bridge)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bridge-desktop: it takes no arguments, but was given %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*hidden, *folder); err != nil {
		fmt.Fprintf(terminal.Writer(os.Stderr), "bridge-desktop: %s\n", err)
		os.Exit(outcome.Code(err))
	}
}

func run(hidden bool, folder string) error {
	home, err := config.OpenHome(folder, os.Getenv)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	// Agents and backups are given the console binary beside this one: hooks must
	// not wait for a window's libraries.
	console := filepath.Join(filepath.Dir(self), "bridge"+filepath.Ext(self))
	wiring := &cli.App{Getenv: os.Getenv, Now: time.Now, Page: frontend.Page(), Version: version, Program: console}
	options, closeLog := wiring.Daemon(home)
	defer closeLog()
	if _, err := os.Stat(console); err != nil {
		options.Agents.Refusal = "the program " + console + " is missing: install Bridge again"
	}
	return app.Run(context.Background(), app.Options{
		Daemon: options, Hidden: hidden, Stdout: terminal.Writer(os.Stdout), Stderr: terminal.Writer(os.Stderr),
	})
}
