//go:build !windows

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the user can still write to the disk of dir. It fails
// if dir does not exist.
func Free(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // their types differ between systems
}
