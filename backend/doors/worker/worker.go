// Package worker holds the common code of the programs that run as long as an
// agent: `bridge-mcp` (package mcp) and `bridge-worker` (package runjob). Every
// agent has one. So they link no database, no dashboard, no network of other PCs,
// and no code that only the other one needs. `bridge` has the same commands and
// becomes these programs if they are in its folder, as in every package.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/proc"
)

// The names of the programs.
const (
	MCPName    = "bridge-mcp"    // the MCP server of a session, the companion of its plugin
	RunnerName = "bridge-worker" // the runner of a delegated job, and its agent's sandbox
)

// Program is one run of such a program. All fields are required.
type Program struct {
	Home    config.Home
	Stdin   io.Reader
	Stdout  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Version string
	// Own is this program's path.
	Own string
	// Console is the path of bridge, which is started as the broker.
	Console string
	// CheckHome fails, with one sentence, if a broker could not serve the home.
	CheckHome func(context.Context, config.Home) error
}

// Run executes a command; args are its arguments without flags.
type Run func(ctx context.Context, p Program, args []string) error

// Command binds a command's flags and returns its Run.
type Command func(*pflag.FlagSet) Run

// Main runs the program of that name with these commands. It returns the exit code.
func Main(name, version string, now func() time.Time, commands map[string]Command) int {
	return Ended(perform(context.Background(), name, os.Args[1:], version, now, commands))
}

// Ended reports how a program's run ended, and returns its exit code.
func Ended(err error) int {
	if err != nil {
		outcome.Report(os.Stdout, terminal.Writer(os.Stderr), "bridge", false, err)
	}
	return outcome.Code(err)
}

func perform(ctx context.Context, name string, args []string, version string, now func() time.Time, commands map[string]Command) error {
	var bind Command
	if len(args) > 0 {
		bind = commands[args[0]]
	}
	if bind == nil {
		return &outcome.UsageError{Err: fmt.Errorf("%s is started by Bridge itself; its commands are those of `bridge`", name)}
	}
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the text
	homeFlag := flags.String("home", "", "")
	command := bind(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return &outcome.UsageError{Err: err}
	}
	home, err := config.OpenHome(*homeFlag, os.Getenv)
	if err != nil {
		return err
	}
	own, err := proc.ProgramOr("")
	if err != nil {
		return err
	}
	p := Program{Home: home, Stdin: os.Stdin, Stdout: os.Stdout, Getenv: os.Getenv, Now: now, Version: version, Own: own}
	p.Console = proc.Sibling(own, name, "bridge")
	p.CheckHome = p.askConsole
	return command(ctx, p, flags.Args())
}

// Problem is the output of `bridge check-home`: the reason why a broker could not serve a home.
type Problem struct {
	Code  bridge.Code `json:"code,omitempty"`
	Error string      `json:"error,omitempty"` // empty without a problem
}

// CheckHome is the name of the command that prints a Problem.
const CheckHome = "check-home"

// askConsole runs bridge to check the home, because this program cannot read the store.
func (p Program) askConsole(ctx context.Context, home config.Home) error {
	if p.Console == "" {
		return bridge.Errorf(bridge.Unavailable, "Bridge is not running for this home, and bridge is not beside %s to start one", p.Own)
	}
	ask := exec.CommandContext(ctx, p.Console, CheckHome, "--home", home.Dir())
	ask.Stderr = io.Discard
	output, err := ask.Output()
	var problem Problem
	if err = errors.Join(err, json.Unmarshal(output, &problem)); err != nil {
		return bridge.Errorf(bridge.Storage, "a broker could not be started: %s %s: %w", p.Console, CheckHome, err)
	}
	if problem.Error != "" {
		return bridge.Errorf(problem.Code, "%s", problem.Error)
	}
	return nil
}

// Target returns the address of the home's broker. It creates the home and its
// token on first use. It fails as Home.Ensure and Home.Token do.
func Target(home config.Home) (ipc.Target, error) {
	if err := home.Ensure(); err != nil {
		return ipc.Target{}, err
	}
	token, err := home.Token()
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}

// JobTarget is [Target] for a program inside a delegated job, which may not read
// the home. The broker identifies the job by its processes then.
func JobTarget(home config.Home) ipc.Target {
	target := ipc.Target{Socket: home.Socket()}
	if token, err := home.ExistingToken(); err == nil {
		target.Token = string(token)
	}
	return target
}
