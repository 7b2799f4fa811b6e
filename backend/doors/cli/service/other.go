//go:build !linux && !windows && !darwin

package service

import (
	"context"

	"bridge/backend/core/bridge"
)

// Manager fails: this system has no service manager that Bridge knows.
func (Service) Manager() (Manager, error) {
	return nil, bridge.Errorf(bridge.Unsupported, "services are for Linux with systemd, macOS and Windows; here, start `bridge serve` by the system's own means")
}

// Journal returns the place of the system's records of the service.
func (Service) Journal() string { return "the system's log" }

// Run runs the broker in the foreground. It returns the error of run.
func Run(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
