package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/snapshot"
)

// backupWorker is the hidden command that the daemon runs as a separate process.
const backupWorker = "backup-worker"

// backupWorkerCommand makes one backup of the messages and proves it by a drill
// (STO-10).
func backupWorkerCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: backupWorker, Short: "Back the messages up once, for the broker", Hidden: true, Args: usage.None,
		Example: "  bridge backup-worker",
		RunE:    func(cmd *cobra.Command, _ []string) error { return backUpMessages(cmd.Context(), a) },
	}
}

func backUpMessages(ctx context.Context, a *App) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	settings, err := home.Settings(a.Getenv)
	if err != nil {
		return err
	}
	log, closeLog := worker.OpenLog(home, a.Getenv)
	defer closeLog()
	ask, hangUp := brokerAnswer(ctx, a, home)
	defer hangUp()
	c := maintain.New(home, "bridge "+backupWorker, settings, a.Now)
	throttle := snapshot.Throttle(a.Now, ask)
	made, err := c.Snapshots().BackupMessages(ctx, throttle)
	if bridge.CodeOf(err) == bridge.Conflict {
		return nil // another process makes the due backup
	}
	if err != nil {
		log.Error("the messages could not be backed up", "err", err)
		return err
	}
	log.Info("messages backed up", "path", made.Path, "bytes", made.Bytes, "moved", len(made.Moved))
	if err := throttle(ctx); err != nil {
		return err
	}
	result, err := c.Restores().Test(ctx, made.Path)
	if err != nil {
		log.Error("the backup of the messages could not be proven", "path", made.Path, "err", err)
		return err
	}
	log.Info("backup of the messages proven", "path", made.Path, "detail", result.Detail)
	return nil
}

// brokerAnswer returns a query that shows how busy the broker is, by its answer
// time. The query fails immediately if none runs.
func brokerAnswer(ctx context.Context, a *App, home config.Home) (ask func(context.Context) error, hangUp func()) {
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	target, err := a.targetOf(home, false)
	if err != nil {
		return fails(err), func() {}
	}
	dialing, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := ipc.Dial(dialing, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: a.Version})
	if err != nil {
		return fails(err), func() {}
	}
	ask = func(ctx context.Context) error {
		_, err := client.Status(ctx)
		return err
	}
	return ask, func() { _ = client.Close() } // it holds no lease
}

// startBackup starts the worker. It outlives this process and has the lowest
// priority.
func (a *App) startBackup(home config.Home) (<-chan struct{}, error) {
	program := a.Program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		program = self
	}
	started, err := proc.StartDetached(proc.Command{
		Path: program, Args: []string{backupWorker, "--home", home.Dir()}, Dir: home.Dir(), LogFile: home.Log() + ".start", LowPriority: true,
	})
	if err != nil {
		return nil, err
	}
	return started.Done(), nil
}
