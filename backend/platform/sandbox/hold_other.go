//go:build !linux

package sandbox

import (
	"os"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// HoldFolder opens a folder by its absolute path, which must contain no link. It
// fails with Denied for a link. This system cannot enter a folder by its handle, so
// a link created later is not noticed.
func HoldFolder(folder string) (*os.File, error) {
	if canonical, err := disk.Canonical(folder); err != nil || canonical != folder {
		return nil, bridge.Errorf(bridge.Denied, "%s is not the folder any more that was allowed: a link leads elsewhere", folder)
	}
	return os.Open(folder)
}

// HeldName returns the folder's path.
func HeldName(held *os.File) string { return held.Name() }
