package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"
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
	return enough(llsys.LandlockGetABIVersion())
}

// enough is Available for what the kernel says of its Landlock.
func enough(abi int, err error) error {
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

// readingRights lets these paths be read, or everything where there are none.
func readingRights(readable []string) []landlock.Rule {
	if len(readable) == 0 {
		return []landlock.Rule{landlock.RODirs("/")}
	}
	var folders, files []string
	for _, path := range readable {
		info, err := os.Stat(path)
		switch {
		case err != nil: // what is not there is not read
		case info.IsDir():
			folders = append(folders, path)
		default:
			files = append(files, path)
		}
	}
	return []landlock.Rule{landlock.RODirs(folders...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing()}
}

// Exec takes the floor and becomes the program argv[0], with env; by EndAll it starts
// the program and ends this process as the program ended. It returns only when that
// failed; nothing ran then.
func Exec(rules Rules, argv, env []string) error {
	if err := Available(); err != nil {
		return err
	}
	writable := rules.Writable
	for _, folder := range rules.Unlinked {
		held, err := HoldFolder(folder)
		if err != nil {
			return err
		}
		defer held.Close()
		writable = append(slices.Clip(writable), HeldName(held))
	}
	rights := append(readingRights(rules.Readable),
		landlock.RWDirs(writable...).WithRefer(),
		landlock.RWFiles(rules.Files...),
		landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing(),
	)
	if rules.OwnDevices {
		rights = append(rights, ownDevices()...)
	}
	// Files and signals in one layer, as much as this kernel has (signals from its
	// version 6 on): a second layer would keep files from being moved or linked
	// from one folder to another, which git does all the time.
	floor := landlock.Config{HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped}.BestEffort()
	if err := floor.Restrict(rights...); err != nil {
		return fmt.Errorf("take the floor: %w", err)
	}
	runtime.LockOSThread() // that thread becomes the program, or starts it
	if err := refuseCalls(rules); err != nil {
		return err
	}
	if rules.EndAll {
		return startAndEndAll(argv, env)
	}
	err := syscall.Exec(argv[0], argv, env)
	return &os.PathError{Op: "run", Path: argv[0], Err: err}
}
