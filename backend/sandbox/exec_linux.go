package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// leastABI is the first Landlock that keeps files from being truncated; an older
// one would let a read job empty every file that it can reach.
const leastABI = 3

// Available reports whether the kernel has the floor; the error says what is
// missing and is ErrUnavailable.
func Available() error {
	abi, err := llsys.LandlockGetABIVersion()
	if err != nil {
		return fmt.Errorf("%w: the kernel has no Landlock (%w)", ErrUnavailable, err)
	}
	if abi < leastABI {
		return fmt.Errorf("%w: the kernel's Landlock is version %d, %d is needed", ErrUnavailable, abi, leastABI)
	}
	return nil
}

// devices are written to by ordinary programs and hold nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Exec takes the floor and becomes the program argv[0], with env. It returns
// only when that failed; nothing ran then.
func Exec(rules Rules, argv, env []string) error {
	if err := Available(); err != nil {
		return err
	}
	rights := []landlock.Rule{
		landlock.RODirs("/"),
		landlock.RWDirs(rules.Writable...).WithRefer(),
		landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing(),
	}
	// As much of the floor as this kernel has: Available has seen that it is enough
	// for files. From its version 6 on no signal reaches a stranger either.
	floor := landlock.V6.BestEffort()
	if err := errors.Join(floor.RestrictPaths(rights...), floor.RestrictScoped()); err != nil {
		return fmt.Errorf("take the floor: %w", err)
	}
	err := syscall.Exec(argv[0], argv, env)
	return &os.PathError{Op: "run", Path: argv[0], Err: err}
}
