// Package worker is what the programs have in common that run beside an agent for as long
// as that does: `bridge-mcp` (package mcp) and `bridge-worker` (package runjob). There are as
// many of them as there are agents, so they link no database, no dashboard and no network of
// other PCs, and neither what only the other one is made of. `bridge` has the same commands
// and becomes these programs where they lie beside, as every package puts them.
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
	RunnerName = "bridge-worker" // the runner of a delegated job, the floor under its agent
)

// Program is one run of a program that works beside an agent. All fields are required.
type Program struct {
	Home    config.Home
	Stdin   io.Reader
	Stdout  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Version string
	// Own is this program's path.
	Own string
	// Console is that of bridge, which is started as the broker.
	Console string
	// CheckHome says in one sentence what would keep a broker from serving the home.
	CheckHome func(context.Context, config.Home) error
}

// Run is what a command does with its arguments, those that are no flags.
type Run func(ctx context.Context, p Program, args []string) error

// Command is one command of such a program: it binds its flags and returns what runs then.
type Command func(*pflag.FlagSet) Run

// Main is the whole program of that name, which has these commands. It returns the exit code.
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
	flags.SetOutput(io.Discard) // the error says it
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
	p.Console = proc.Beside(own, name, "bridge")
	p.CheckHome = p.askConsole
	return command(ctx, p, flags.Args())
}

// Problem is what `bridge check-home` prints: what would keep a broker from serving a home.
type Problem struct {
	Code  bridge.Code `json:"code,omitempty"`
	Error string      `json:"error,omitempty"` // empty where nothing would
}

// CheckHome is the command that prints it.
const CheckHome = "check-home"

// askConsole has bridge look at the home: this program could not look into the store.
func (p Program) askConsole(ctx context.Context, home config.Home) error {
	if p.Console == "" {
		return bridge.Errorf(bridge.Unavailable, "no broker is running for this home, and bridge is not beside %s to start one", p.Own)
	}
	ask := exec.CommandContext(ctx, p.Console, CheckHome, "--home", home.Dir())
	ask.Stderr = io.Discard
	said, err := ask.Output()
	var problem Problem
	if err = errors.Join(err, json.Unmarshal(said, &problem)); err != nil {
		return bridge.Errorf(bridge.Storage, "a broker could not be started: %s %s: %w", p.Console, CheckHome, err)
	}
	if problem.Error != "" {
		return bridge.Errorf(problem.Code, "%s", problem.Error)
	}
	return nil
}

// Target is the address of the home's broker; the home and its token are made
// when this is the first use.
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

// JobTarget is Target for a program inside a delegated job, which may not read the home:
// the broker knows the job by its processes then.
func JobTarget(home config.Home) ipc.Target {
	target := ipc.Target{Socket: home.Socket()}
	if token, err := home.ExistingToken(); err == nil {
		target.Token = string(token)
	}
	return target
}
