package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// StartSync has the system write to the disk what the file holds so far, and waits
// only for what it was asked to write before. It makes nothing durable: it spreads
// the work of a later Sync, which would be in everybody's way if it came at once.
// Systems without such a call do nothing. After an error Sync must not be relied on:
// the system tells a file of a failed write once.
func StartSync(file *os.File) error {
	const fromStart, toEnd = 0, 0
	err := unix.SyncFileRange(int(file.Fd()), fromStart, toEnd, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("write %s: %w", file.Name(), err)
	}
	return nil
}
