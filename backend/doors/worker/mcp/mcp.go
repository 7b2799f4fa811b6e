// Package mcp runs with a session: its MCP server and the companion of its agent's
// plugin, and the program `bridge-mcp` with these two commands.
package mcp

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"bridge/backend/agent"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/hook"
	"bridge/backend/doors/mcpserver"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// Main is the complete program. It returns the exit code.
func Main(version string, now func() time.Time) int {
	return worker.Main(worker.MCPName, version, now, map[string]worker.Command{"mcp": Serve, "plugin": Plugin})
}

// mcpFlags are the flags of `bridge mcp`.
type mcpFlags struct {
	kind           string
	delegate, asks bool
	register       api.Register
}

// Serve binds the command that runs one session's MCP server on standard input and output.
func Serve(flags *pflag.FlagSet) worker.Run {
	var f mcpFlags
	flags.StringVar(&f.kind, "agent", "", "agent kind: claude, codex, opencode or antigravity")
	flags.StringVar(&f.register.Name, "name", "", "session name (default <agent>-<project folder>)")
	flags.StringVar(&f.register.SessionID, "session", "", "the agent's own session id, when known")
	flags.BoolVar(&f.delegate, "delegate", false, "let the delegated job that this session is hand on work of its own")
	flags.BoolVar(&f.asks, setup.AsksFlag, false, "the agent was told to ask before the tools that start or steer the work of another one")
	for _, internal := range []string{"delegate", setup.AsksFlag} {
		_ = flags.MarkHidden(internal) // it exists
	}
	flags.StringVar(&f.register.Cwd, "cwd", "", "project folder (default: where the agent runs)")
	return func(ctx context.Context, p worker.Program, _ []string) error {
		if err := f.complete(p.Getenv); err != nil {
			return err
		}
		return f.run(ctx, p)
	}
}

// complete fills in values from the environment, and fails for invalid ones.
func (f *mcpFlags) complete(getenv func(string) string) (err error) {
	if f.kind == "" {
		return &outcome.UsageError{Err: errors.New("--agent KIND is missing: claude, codex, opencode or antigravity")}
	}
	if f.register.Kind, err = parseKind(f.kind, getenv); err != nil {
		return err
	}
	if f.register.Name == "" {
		f.register.Name = getenv("BRIDGE_NAME")
	}
	if f.register.Name != "" {
		if err := bridge.CheckName(f.register.Name); err != nil {
			return err
		}
	}
	if name := getenv(sandbox.JobVariable); job.IsName(name) {
		f.register.Name, f.register.Runner, f.register.JobToken = name, true, getenv(sandbox.TokenVariable)
	}
	identify(getenv, &f.register)
	return nil
}

func (f *mcpFlags) run(ctx context.Context, p worker.Program) error {
	target := worker.JobTarget(p.Home)
	if !f.register.Runner {
		var err error
		if target, err = worker.Target(p.Home); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, closeLog := worker.OpenLog(p.Home, p.Getenv)
	defer closeLog()
	jobs, remote, agents := jobsAllowed(p.Home, p.Getenv)
	input, restore := pollable(p.Stdin, p.Stdout, os.Stderr)
	defer restore()
	return mcpserver.Run(ctx, mcpserver.Options{
		Register: f.register, Target: target, Start: p.StartBroker(), Journal: ipc.Journal{Dir: p.Home.ReadJournal()},
		Version: p.Version, Now: p.Now, Log: log, HostLives: sameProcess(f.register.AgentPID),
		Jobs: jobs && (f.delegate || !f.register.Runner && (f.asks || byHand(p, f.register.Kind))), Remote: remote, ACP: agents, Job: p.Getenv(sandbox.JobVariable), JobToken: p.Getenv(sandbox.TokenVariable),
	}, input, p.Stdout)
}

// parseKind parses the kind of a session. An ACP agent has a session only while it
// works on a job.
func parseKind(flag string, getenv func(string) string) (bridge.AgentKind, error) {
	if name := getenv(sandbox.JobVariable); flag == string(job.ACP) && job.IsName(name) {
		return job.ACP, nil
	}
	return bridge.ParseKind(flag)
}

// jobsAllowed reports whether the owner lets sessions delegate jobs and whether links
// to other PCs are on. It also returns the agents of agents.acp. An unreadable
// config.json allows nothing; if only its jobs are wrong, the job tools report that.
func jobsAllowed(home config.Home, getenv func(string) string) (allowed, remote bool, agents []string) {
	settings, err := home.Settings(getenv)
	return err == nil && (settings.Jobs.Enabled || settings.Jobs.Problem() != nil), settings.Network.Enabled, settings.ACPNames()
}

// byHand reports whether the entry that started this program was not written by an
// installation. An entry from before agents had to ask (setup.AskedTools) allows
// every tool without a question. An unreadable installation counts as such.
func byHand(p worker.Program, kind bridge.AgentKind) bool {
	connected, err := setup.Installed(setup.StateFolder(p.Home.Dir()))
	return err == nil && !slices.Contains(connected, kind)
}

// sameProcess returns a function that reports whether process pid is still the
// same. It returns true if the system does not report identities.
func sameProcess(pid int) func() bool {
	before, err := proc.Identity(pid)
	return func() bool {
		now, nowErr := proc.Identity(pid)
		return err != nil || nowErr == nil && now == before
	}
}

// identify fills in the session's data from the environment. Flags take precedence.
func identify(getenv func(string) string, register *api.Register) {
	register.AgentPID, register.HostKnown = hostProcess(register.Kind)
	register.CLIDataDir = hook.CLIDataDir(register.Kind, getenv)
	traits := bridge.TraitsOf(register.Kind)
	if traits.MCP.SessionVariable != "" && register.SessionID == "" {
		register.SessionID = getenv(traits.MCP.SessionVariable)
	}
	if traits.Channel && register.HostKnown {
		register.Channel = channelOpen(register.AgentPID)
	}
	register.Threads = traits.BackgroundServer && register.HostKnown && backgroundServer(getenv, register.Kind, register.AgentPID)
	if register.Cwd == "" && traits.MCP.FolderVariable != "" {
		register.Cwd = getenv(traits.MCP.FolderVariable)
	}
	if register.Cwd == "" {
		register.Cwd, _ = os.Getwd() // a removed folder is unknown
	}
	// opencode runs one server for all of its sessions; its plugin distinguishes
	// them. Without an opencode process above, this process is one session.
	register.Shared = traits.SharedServer && register.HostKnown && register.SessionID == "" && register.Name == ""
}

// backgroundServer reports whether codex serves its sessions from one process. Its
// own background server runs from a folder that codex puts on the PATH. The command
// line of a server that a person started shows it, if readable.
func backgroundServer(getenv func(string) string, kind bridge.AgentKind, pid int) bool {
	const folder = "app-server-daemon"
	if strings.Contains(getenv("PATH"), string(filepath.Separator)+folder+string(filepath.Separator)) {
		return true
	}
	return agent.IsServer(kind, pid)
}

// channelOpen reports whether Claude Code was started with Bridge's channel: it
// shows a server's channel notifications only if a flag names the server. If the
// command line cannot be read, the channel counts as closed and hooks deliver the
// mail.
func channelOpen(pid int) bool {
	return namesChannel(proc.CommandLine(pid))
}

// channelFlags take the channels to open, as following arguments or after '='.
var channelFlags = []string{"--channels", "--dangerously-load-development-channels"}

// namesChannel reports whether a Claude Code command line opens the channel of the
// server called bridge.
func namesChannel(args []string) bool {
	inside := false
	for _, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case slices.Contains(channelFlags, name):
			inside = !joined
			if joined && namesBridge(value) {
				return true
			}
		case strings.HasPrefix(arg, "-"):
			inside = false
		case inside && namesBridge(arg):
			return true
		}
	}
	return false
}

func namesBridge(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(entry string) bool { return strings.TrimSpace(entry) == "server:bridge" })
}

// maxHostDistance is how many processes may be between an agent and its MCP server,
// such as shells and wrappers.
const maxHostDistance = 4

// hostProcess returns the nearest agent's process above this one. If that is not of
// this kind, it returns the parent, and known is false.
func hostProcess(kind bridge.AgentKind) (pid int, known bool) {
	above := proc.Ancestors(os.Getpid(), maxHostDistance)
	if at, found := agent.Nearest(above, func(int) bool { return false }); at >= 0 && found == kind {
		return above[at].PID, true
	}
	return os.Getppid(), false
}
