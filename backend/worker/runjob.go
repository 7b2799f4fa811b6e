package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"bridge/backend/agent"
	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/bridge"
	"bridge/backend/cli/outcome"
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

// SandboxExec is the command that puts the floor under a program and becomes it (JOB-14).
const SandboxExec = "sandbox-exec"

// RunJob drives one delegated job: FOLDER is the job's.
func RunJob(*pflag.FlagSet) Run {
	return func(ctx context.Context, p Program, args []string) error {
		if len(args) != 1 {
			return &outcome.UsageError{Err: fmt.Errorf("run-job is about the folder of one job, and was given %q", args)}
		}
		return p.runJob(ctx, args[0])
	}
}

// runJob is the process of a job's runner: what a job leaves behind falls to it. Its
// lease keeps a restore or a fix away while it writes.
func (p Program) runJob(ctx context.Context, folder string) (err error) {
	if folder, err = jobFolder(p.Home, folder); err != nil {
		return err
	}
	target, err := Target(p.Home)
	if err != nil {
		return err
	}
	held, err := lease.Worker{Home: p.Home, Program: "bridge run-job", Now: p.Now}.Register()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if err := sandbox.Adopt(); err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, closeLog := OpenLog(p.Home, p.Getenv)
	defer closeLog()
	reconnector := &ipc.Reconnector{Target: target, Hello: ipc.Hello{Role: api.RoleRunner, PID: os.Getpid(), Version: p.Version}}
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	go reconnector.Run(linked)
	err = runner.Run(ctx, p.runnerOptions(folder, reconnector, log))
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

func (p Program) runnerOptions(folder string, reconnector *ipc.Reconnector, log *slog.Logger) runner.Options {
	git, err := gitwork.New(os.Environ())
	if err != nil {
		git = nil // a worktree is refused then, with a sentence
	}
	settings, _ := p.Home.Settings(p.Getenv) // fitJob says what is wrong with them
	return runner.Options{
		Folder: folder, Logs: filepath.Join(p.Home.Dir(), "runs"), Approvals: filepath.Join(p.Home.Dir(), "approvals"),
		Worktrees: p.Home.Worktrees(), Driver: driver.For,
		Fit: p.fitJob,
		Git: git, SetUp: settings.Jobs.SetUp,
		Broker: runner.Link(reconnector), Patience: resultPatience, Now: p.Now, Log: log, At: p.At,
	}
}

// fitJob adds what this PC and its settings say about a job.
func (p Program) fitJob(spec job.Spec) (job.Spec, error) {
	settings, err := p.Home.Settings(p.Getenv)
	if err = cmp.Or(err, settings.Jobs.Problem()); err != nil {
		return spec, err
	}
	if err = settings.Jobs.Limits().CheckAccess(spec.Access); err != nil { // as config.json says now
		return spec, err
	}
	if spec, err = agent.Fit(spec, settings, p.Getenv); err != nil {
		return spec, err
	}
	spec.Env = append(jobEnvironment(spec, settings.Jobs, p.Getenv), spec.Env...)
	delegates := spec.Depth < settings.Jobs.Limits().Depth()
	spec.Bridge = job.MCPServer{
		Command: p.Own, Args: []string{"mcp", "--agent", string(spec.Kind), "--home", p.Home.Dir()}, Tools: mcpserver.ToolsOfJob(delegates, settings.ACPNames()),
	}
	if delegates {
		spec.Bridge.Args = append(spec.Bridge.Args, "--delegate")
	}
	if sandbox.Available() == nil {
		spec.Sandbox = []string{p.Own, SandboxExec}
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
