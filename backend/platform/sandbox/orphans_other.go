//go:build !linux

package sandbox

import (
	"context"
	"os/exec"
)

// StartLeader starts a command that heads a session of its own.
func StartLeader(cmd *exec.Cmd) error { return cmd.Start() }

// Collected does nothing: this system gives no orphans to a process.
func Collected(int) {}

// ReapOrphans does nothing: this system gives no orphans to a process.
func ReapOrphans(context.Context) {}
