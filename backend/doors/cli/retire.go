package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// retireCommand asks a background broker to finish its work and end, for a setup
// that replaces its program. Sessions find or start the next one automatically.
func retireCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "retire", Short: "Ask a broker in the background to leave", Hidden: true, Args: usage.None,
		Example: "  bridge retire",
		RunE:    func(cmd *cobra.Command, _ []string) error { return retire(cmd.Context(), a) },
	}
}

func retire(ctx context.Context, a *App) error {
	client, home, err := a.dialOwner(ctx, startsNone)
	if bridge.CodeOf(err) == bridge.Unavailable {
		return nil // none runs
	}
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Retire(ctx); err != nil && bridge.CodeOf(err) != bridge.Unavailable {
		return err
	}
	target, err := a.targetOf(home, false)
	if err != nil {
		return err
	}
	hello := ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: a.Version}
	for deadline := a.Now().Add(brokerPatience); a.Now().Before(deadline); {
		redialed, err := ipc.Dial(ctx, target, hello)
		if err != nil {
			return nil // it has ended
		}
		_ = redialed.Close() // it held no lease
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return bridge.Errorf(bridge.Busy, "the broker was asked to leave and is still there")
}
