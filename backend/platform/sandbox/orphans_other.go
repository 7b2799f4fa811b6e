//go:build !linux

package sandbox

import (
	"context"
	"os/exec"
)

// StartLeader starts a command. It fails if the program cannot be started.
func StartLeader(cmd *exec.Cmd) error { return cmd.Start() }

// Collected does nothing: this system has no adopted orphans.
func Collected(int) {}

// ReapOrphans does nothing: this system has no adopted orphans.
func ReapOrphans(context.Context) {}
