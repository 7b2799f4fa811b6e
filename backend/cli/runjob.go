package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/agent"
	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/disk"
	"bridge/backend/gitwork"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/maintain/lease"
	"bridge/backend/mcpserver"
	"bridge/backend/runner"
	"bridge/backend/sandbox"
)

// resultPatience is for how long a runner offers its result where no broker takes
// it. The next broker finds the envelope by itself.
const resultPatience = 10 * time.Minute

func runJobCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "run-job FOLDER", Short: "Drive one delegated job; the broker starts this", Hidden: true, Args: exactArgs(1),
		Example: "  bridge run-job ~/.bridge/jobs/codex-job-0a1b2c3d",
		RunE:    func(cmd *cobra.Command, args []string) error { return runJob(cmd.Context(), a, args[0]) },
	}
}

// runJob is the process of a job's runner: what a job leaves behind falls to it. Its
// lease keeps a restore or a fix away while it writes.
func runJob(ctx context.Context, a *App, folder string) (err error) {
	home, err := a.home()
	if err != nil {
		return err
	}
	if folder, err = jobFolder(home, folder); err != nil {
		return err
	}
	target, err := a.target(home)
	if err != nil {
		return err
	}
	held, err := lease.Worker{Home: home, Program: "bridge run-job", Now: a.Now}.Register()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if err := sandbox.Adopt(); err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, closeLog := a.openLog(home)
	defer closeLog()
	reconnector := &ipc.Reconnector{Target: target, Hello: ipc.Hello{Role: api.RoleRunner, PID: os.Getpid(), Version: a.Version}}
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	go reconnector.Run(linked)
	err = runner.Run(ctx, a.runnerOptions(home, folder, reconnector, log))
	if err != nil {
		log.Error("the job could not be driven to its end", "job", filepath.Base(folder), "err", err)
	}
	return err
}

// jobFolder wants a folder of a job of this home.
func jobFolder(home config.Home, folder string) (string, error) {
	folder, err := disk.Canonical(folder)
	if err != nil {
		return "", bridge.Errorf(bridge.NotFound, "there is no such job: %w", err)
	}
	if filepath.Dir(folder) != filepath.Join(home.Dir(), "jobs") || !job.IsName(filepath.Base(folder)) {
		return "", bridge.Errorf(bridge.Invalid, "%s is no job of the home %s", folder, home.Dir())
	}
	return folder, nil
}

func (a *App) runnerOptions(home config.Home, folder string, reconnector *ipc.Reconnector, log *slog.Logger) runner.Options {
	git, err := gitwork.New(os.Environ())
	if err != nil {
		git = nil // a worktree is refused then, with a sentence
	}
	settings, _ := home.Settings(a.Getenv) // fitJob says what is wrong with them
	return runner.Options{
		Folder: folder, Logs: filepath.Join(home.Dir(), "runs"), Approvals: filepath.Join(home.Dir(), "approvals"),
		Worktrees: home.Worktrees(), Driver: driver.For,
		Fit: func(spec job.Spec) (job.Spec, error) { return a.fitJob(home, spec) },
		Git: git, SetUp: settings.Jobs.SetUp,
		Broker: runner.Link(reconnector), Patience: resultPatience, Now: a.Now, Log: log, At: a.RunnerAt,
	}
}

// fitJob adds what this PC and its settings say about a job.
func (a *App) fitJob(home config.Home, spec job.Spec) (job.Spec, error) {
	settings, err := home.Settings(a.Getenv)
	if err = cmp.Or(err, settings.Jobs.Problem()); err != nil {
		return spec, err
	}
	if err = settings.Jobs.Limits().CheckAccess(spec.Access); err != nil { // as config.json says now
		return spec, err
	}
	if spec, err = agent.Fit(spec, settings, a.Getenv); err != nil {
		return spec, err
	}
	self, err := programOr(a.Program)
	if err != nil {
		return spec, err
	}
	spec.Env = append(jobEnvironment(spec, settings.Jobs, a.Getenv), spec.Env...)
	delegates := spec.Depth < settings.Jobs.Limits().Depth()
	spec.Bridge = job.MCPServer{
		Command: self, Args: []string{"mcp", "--agent", string(spec.Kind), "--home", home.Dir()}, Tools: mcpserver.ToolsOfJob(delegates, settings.ACPNames()),
	}
	if delegates {
		spec.Bridge.Args = append(spec.Bridge.Args, "--delegate")
	}
	if sandbox.Available() == nil {
		spec.Sandbox = []string{self, "sandbox-exec"}
	}
	return spec, nil
}

// jobEnvironment is what a job gets of the environment of this process, which its broker
// made like that of the owner's own terminal (JOB-28). A job of a paired PC gets what is
// listed for it.
func jobEnvironment(spec job.Spec, settings config.Jobs, getenv func(string) string) (env []string) {
	if !spec.Unlinked {
		return append(run.Inherited(spec.Kind, os.Environ()), settings.Variables()...)
	}
	for _, name := range settings.Environment {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// sandboxExecCommand puts the floor under a program and becomes it (JOB-14).
func sandboxExecCommand(_ *App) *cobra.Command {
	return &cobra.Command{
		Use: "sandbox-exec [--writable=FOLDER]... [--no-network] -- PROGRAM [ARGUMENT]...", Short: "Run a program that can write nowhere else", Hidden: true,
		Example: "  bridge sandbox-exec --writable=/tmp/job -- /usr/bin/make test", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			return sandbox.Main(args, os.Environ())
		},
	}
}
