//go:build !linux

package ipc

// dialAsChild is used on Linux alone.
func dialAsChild(string) int { return 2 }
