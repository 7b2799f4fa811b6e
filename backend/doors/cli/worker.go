package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/daemon"
	"bridge/backend/doors/worker"
	"bridge/backend/doors/worker/mcp"
	"bridge/backend/doors/worker/runjob"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// Separate programs run with an agent, if they are in this program's folder. These
// are their commands for people.

func mcpCommand(a *App) *cobra.Command {
	return a.siblingCommand(worker.MCPName, mcp.Serve, &cobra.Command{
		Use: "mcp --agent KIND", Short: "Run the MCP server for one agent session, on standard input and output", Hidden: true,
		Example: "  bridge mcp --agent codex\n  bridge mcp --agent claude --name reviewer --cwd /home/me/api", Args: usage.None,
	})
}

func pluginCommand(a *App) *cobra.Command {
	return a.siblingCommand(worker.MCPName, mcp.Plugin, &cobra.Command{
		Use: "plugin KIND", Short: "Serve an agent's plugin, as JSON lines on standard input and output", Hidden: true,
		Example: "  bridge plugin opencode", Args: usage.Exact(1),
	})
}

func runJobCommand(a *App) *cobra.Command {
	return a.siblingCommand(worker.RunnerName, runjob.Command, &cobra.Command{
		Use: "run-job FOLDER", Short: "Drive one delegated job; the broker starts this", Hidden: true, Args: usage.Exact(1),
		Example: "  bridge run-job ~/.bridge/jobs/codex-job-0a1b2c3d",
	})
}

// siblingCommand makes cmd that command of the program name. It runs that program if
// it exists, or else this one.
func (a *App) siblingCommand(name string, bind worker.Command, cmd *cobra.Command) *cobra.Command {
	run := bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		home, err := a.home()
		if err != nil {
			return err
		}
		self, err := proc.ProgramOr("")
		if err != nil {
			return err
		}
		program := cmp.Or(a.Program, self)
		if other := siblingProgram(name, program); a.Program == "" && other != self {
			_ = proc.Replace(other, a.Args) // it returns only on failure: then this program does it
		}
		return run(cmd.Context(), worker.Program{
			Home: home, Stdin: a.Stdin, Stdout: a.Stdout, Getenv: a.Getenv, Now: a.Now, Version: a.Version,
			Own: siblingProgram(worker.RunnerName, program), Console: self, CheckHome: a.checkHome,
		}, args)
	}
	return cmd
}

// siblingProgram returns the program name in the folder of program, which is bridge. If
// it is missing, it returns bridge, which has the same commands.
func siblingProgram(name, program string) string {
	return cmp.Or(proc.Sibling(program, "bridge", name), program)
}

// startBackground starts a broker that outlives this process.
func (a *App) startBackground(home config.Home) ipc.Starter {
	console, err := proc.ProgramOr("")
	if err != nil {
		return func(context.Context) (<-chan struct{}, error) { return nil, err }
	}
	return worker.Program{Home: home, Getenv: a.Getenv, Console: console, CheckHome: a.checkHome}.StartBroker()
}

func (a *App) checkHome(ctx context.Context, home config.Home) error {
	return daemon.Check(ctx, home, a.Getenv)
}

func checkHomeCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: worker.CheckHome, Short: "Print what would keep a broker from serving the home; a worker asks", Hidden: true, Args: usage.None,
		Example: "  bridge check-home",
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			var problem worker.Problem
			if err := a.checkHome(cmd.Context(), home); err != nil {
				problem = worker.Problem{Code: bridge.CodeOf(err), Error: err.Error()}
			}
			return json.NewEncoder(a.Stdout).Encode(problem)
		},
	}
}

// sandboxExecCommand starts a program in the sandbox (JOB-14).
func sandboxExecCommand(_ *App) *cobra.Command {
	return &cobra.Command{
		Use: runjob.SandboxExec + " [--writable=FOLDER]... [--no-network] [--no-sockets] [--end-all] -- PROGRAM [ARGUMENT]...", Short: "Run a program that can write nowhere else", Hidden: true,
		Example: "  bridge sandbox-exec --writable=/tmp/job -- /usr/bin/make test", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			return sandbox.Main(args, os.Environ())
		},
	}
}
