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

// leastABI is the first Landlock version that blocks truncating files. With an
// older one a read job could empty every reachable file.
const leastABI = 3

// Available fails with ErrUnavailable if the kernel has no sandbox; the error names
// the missing feature.
func Available() error {
	return enough(llsys.LandlockGetABIVersion())
}

// enough is [Available] for the kernel's answer about its Landlock.
func enough(abi int, err error) error {
	if err != nil {
		return fmt.Errorf("%w: the kernel has no Landlock (%w)", ErrUnavailable, err)
	}
	if abi < leastABI {
		return fmt.Errorf("%w: the kernel's Landlock is version %d, %d is needed", ErrUnavailable, abi, leastABI)
	}
	return nil
}

// devices are devices that ordinary programs write to and that store nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// readingRights allows reading these paths, or everything if there are none.
func readingRights(readable []string) []landlock.Rule {
	if len(readable) == 0 {
		return []landlock.Rule{landlock.RODirs("/")}
	}
	var folders, files []string
	for _, path := range readable {
		info, err := os.Stat(path)
		switch {
		case err != nil: // a missing path needs no right
		case info.IsDir():
			folders = append(folders, path)
		default:
			files = append(files, path)
		}
	}
	return []landlock.Rule{landlock.RODirs(folders...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing()}
}

// Exec enters the sandbox and becomes the program argv[0], with env. With EndAll it
// starts the program instead and exits with its status. It returns only if that
// failed; then nothing ran. It fails with [ErrUnavailable] without a sandbox.
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
	// Files and signals are in one layer, as far as this kernel supports it
	// (signals from ABI version 6). A second layer would block moving or linking
	// files between folders, which git does all the time.
	floor := landlock.Config{HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped}.BestEffort()
	if err := floor.Restrict(rights...); err != nil {
		return fmt.Errorf("take the floor: %w", err)
	}
	runtime.LockOSThread() // this thread becomes the program, or starts it
	if err := refuseCalls(rules); err != nil {
		return err
	}
	if rules.EndAll {
		return startAndEndAll(argv, env)
	}
	err := syscall.Exec(argv[0], argv, env)
	return &os.PathError{Op: "run", Path: argv[0], Err: err}
}
