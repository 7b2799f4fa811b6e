//go:build !linux

package sandbox

// Available reports that this system has no floor: ErrUnavailable.
func Available() error { return ErrUnavailable }

// Exec refuses: a program without the floor that it was to have does not run.
func Exec(Rules, []string, []string) error { return ErrUnavailable }

// SupervisorFD is unused where there is no sandbox.
const SupervisorFD = 3

func connectAll(string) error { return ErrUnavailable }
