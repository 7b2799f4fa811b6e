//go:build !linux

package sandbox

import (
	"os"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// HoldFolder opens a folder by its absolute name, no part of which may be a link.
// This system cannot enter a folder by what is held of it: a link that takes the name
// afterwards is not noticed.
func HoldFolder(folder string) (*os.File, error) {
	if there, err := disk.Canonical(folder); err != nil || there != folder {
		return nil, bridge.Errorf(bridge.Denied, "%s is not the folder any more that was allowed: a link leads elsewhere", folder)
	}
	return os.Open(folder)
}

// HeldName is the folder's name.
func HeldName(held *os.File) string { return held.Name() }
