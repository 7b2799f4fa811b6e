// Package runjob is the runner of one delegated job with its agent's sandbox, and
// the program `bridge-worker` with these two commands.
package runjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"bridge/backend/agent"
	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/worker"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/runner"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/storage/maintain/lease"
)

// resultPatience is how long a runner offers its result while no broker accepts it.
// The next broker then finds the envelope automatically.
const resultPatience = 10 * time.Minute

// SandboxExec is the command that enters the sandbox and becomes a program (JOB-14).
const SandboxExec = "sandbox-exec"

// Main is the complete program. It returns the exit code. at is called at each step
// of the job, or is nil. It lets tests stop there.
func Main(version string, now func() time.Time, at func(runner.Step)) int {
	if len(os.Args) > 1 && os.Args[1] == SandboxExec {
		return worker.Ended(sandbox.Main(os.Args[2:], os.Environ()))
	}
	return worker.Main(worker.RunnerName, version, now, map[string]worker.Command{"run-job": command(at)})
}

// Command binds the command that drives one delegated job; FOLDER is the job's folder.
func Command(flags *pflag.FlagSet) worker.Run { return command(nil)(flags) }

func command(at func(runner.Step)) worker.Command {
	return func(*pflag.FlagSet) worker.Run {
		return func(ctx context.Context, p worker.Program, args []string) error {
			if len(args) != 1 {
				return &outcome.UsageError{Err: fmt.Errorf("run-job is about the folder of one job, and was given %q", args)}
			}
			return program{p, at}.drive(ctx, args[0])
		}
	}
}

// program is one run of this program.
type program struct {
	worker.Program
	at func(runner.Step)
}

// runnerMemory is the memory size, in bytes, from which a runner collects garbage
// more often, because every job has a runner (SEC-11).
const runnerMemory = 56 << 20

// drive is the process of a job's runner; it adopts the job's orphans. Its lease
// keeps a restore or a fix away while it writes.
func (p program) drive(ctx context.Context, folder string) (err error) {
	debug.SetMemoryLimit(runnerMemory)
	if folder, err = jobFolder(p.Home, folder); err != nil {
		return err
	}
	target, err := worker.Target(p.Home)
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
	reaping, endReaping := context.WithCancel(context.WithoutCancel(ctx))
	defer endReaping()
	go sandbox.ReapOrphans(reaping)
	log, closeLog := worker.OpenLog(p.Home, p.Getenv)
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

// jobFolder fails unless folder is the folder of a job of this home.
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

func (p program) runnerOptions(folder string, reconnector *ipc.Reconnector, log *slog.Logger) runner.Options {
	settings, _ := p.Home.Settings(p.Getenv) // fitJob reports their errors
	home, _ := os.UserHomeDir()              // without it no folder is below it
	git, err := gitwork.Open(gitwork.Options{Environ: os.Environ(), Jobs: settings.Jobs.Variables(), Sandbox: Sandbox(p.Own), Home: p.Home.Dir()})
	if err != nil {
		git = nil // a worktree is then refused with an explanation
	}
	return runner.Options{
		Folder: folder, Logs: filepath.Join(p.Home.Dir(), "runs"), Approvals: filepath.Join(p.Home.Dir(), "approvals"),
		Worktrees: p.Home.Worktrees(), Driver: driver.For,
		Fit: p.fitJob, CheckFolder: config.ReservedFolders(p.Home, p.Getenv).Check,
		Git: git, SetUp: settings.Jobs.SetUp, Writable: settings.Jobs.WritableFolders(home), MaxLogBytes: settings.Jobs.MaxLogBytes, MaxProcesses: settings.Jobs.MaxProcesses,
		Broker: runner.Link(reconnector), Timeout: resultPatience, Now: p.Now, Log: log, At: p.at,
	}
}

// fitJob adds what this PC and its settings say about a job.
func (p program) fitJob(spec job.Spec) (job.Spec, error) {
	settings, err := p.Home.Settings(p.Getenv)
	if err = cmp.Or(err, settings.Jobs.Problem()); err != nil {
		return spec, err
	}
	if err = settings.Jobs.Limits().CheckAccess(spec.Access); err != nil { // as config.json says now
		return spec, err
	}
	if spec, err = agent.Fit(spec, settings, agent.Lookup{Env: p.Getenv}); err != nil {
		return spec, err
	}
	spec.Env = append(jobEnvironment(spec, settings.Jobs, p.Getenv), spec.Env...)
	delegates := spec.Depth < settings.Jobs.Limits().Depth()
	server := cmp.Or(proc.Sibling(p.Own, worker.RunnerName, worker.MCPName), p.Console)
	if server == "" {
		return spec, bridge.Errorf(bridge.Unavailable, "the job would have no tools: %s is not beside %s", worker.MCPName, p.Own)
	}
	spec.Bridge = job.MCPServer{
		Command: server, Args: []string{"mcp", "--agent", string(spec.Kind), "--home", p.Home.Dir()}, Tools: job.Tools(delegates, len(settings.ACPNames()) > 0),
	}
	if delegates {
		spec.Bridge.Args = append(spec.Bridge.Args, "--delegate")
	}
	spec.Sandbox, spec.BrokerSocket = Sandbox(p.Own), p.Home.Socket()
	if !spec.Unlinked { // a paired PC's job reaches no program of this PC
		env := run.Environment(spec)
		spec.Sockets = settings.Jobs.SocketPaths(run.UserHome(env), env.Get)
	}
	return spec, nil
}

// Sandbox returns the command by which a program runs another one in the sandbox.
// It is empty on systems without a sandbox. The program must support SandboxExec.
func Sandbox(program string) []string {
	if sandbox.Available() != nil {
		return nil
	}
	return []string{program, SandboxExec}
}

// jobEnvironment returns the part of this process's environment that a job gets.
// The broker made it like that of the owner's own terminal (JOB-28). A job of a
// paired PC gets only the listed variables.
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
