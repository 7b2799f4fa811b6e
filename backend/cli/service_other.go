//go:build !linux && !windows

package cli

import (
	"context"

	"bridge/backend/bridge"
)

func (a *App) serviceManager(service) (serviceManager, error) {
	return nil, bridge.Errorf(bridge.Unsupported, "services are for Linux with systemd and for Windows; here, start `bridge serve` by the system's own means")
}

func (service) journal() string { return "the system's log" }

func runAsService(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
