package disk

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Free returns how many bytes the user can still write to the disk of dir. It fails
// if dir does not exist.
func Free(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(min(free, 1<<62)), nil
}
