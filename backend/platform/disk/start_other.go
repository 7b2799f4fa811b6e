//go:build !linux

package disk

import "os"

// StartSync does nothing, and never fails, where the system has no such call.
func StartSync(*os.File) error { return nil }
