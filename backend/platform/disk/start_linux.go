package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// StartSync starts writing the file's current content to the disk and waits only
// for earlier such writes. It makes nothing durable: it spreads the work of a later
// Sync, which would otherwise delay other writers. It does nothing if the system
// has no such call. If it fails, a later Sync is not reliable, because the system
// reports a failed write only once.
func StartSync(file *os.File) error {
	const fromStart, toEnd = 0, 0
	err := unix.SyncFileRange(int(file.Fd()), fromStart, toEnd, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("write %s: %w", file.Name(), err)
	}
	return nil
}
