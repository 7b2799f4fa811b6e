//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile opens the file and locks it. It fails with [ErrLocked] if the lock is
// held, and with [errors.ErrUnsupported] if there are no locks.
func lockFile(path string) (*FileLock, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := flock(file, unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, file.Close()))
	}
	return &FileLock{file}, nil
}

// IsLocked reports whether a process holds the [FileLock] of the file at path. It
// fails with [errors.ErrUnsupported] if there are no locks.
func IsLocked(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = flock(file, unix.LOCK_SH) // a shared lock: two concurrent checks do not see each other
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// flock locks the open file or fails without waiting.
func flock(file *os.File, how int) error {
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("%w: %w", ErrLocked, err)
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
			return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		default:
			return err
		}
	}
}
