//go:build !linux && !windows && !darwin

package cli

import (
	"context"

	"bridge/backend/bridge"
)

func (a *App) serviceManager(service) (serviceManager, error) {
	return nil, bridge.Errorf(bridge.Unsupported, "services are for Linux with systemd, macOS and Windows; here, start `bridge serve` by the system's own means")
}

func (service) journal() string { return "the system's log" }

func runAsService(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
