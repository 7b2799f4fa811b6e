//go:build !linux

package sandbox

// Available fails with [ErrUnavailable]: this system has no sandbox.
func Available() error { return ErrUnavailable }

// Exec fails with [ErrUnavailable]: a program without its sandbox must not run.
func Exec(Rules, []string, []string) error { return ErrUnavailable }

// SupervisorFD is unused without a sandbox.
const SupervisorFD = 3

func connectAll(string) error { return ErrUnavailable }
