//go:build !linux

package proc

// CommandLine returns nil: Bridge reads the words of a process on Linux alone.
func CommandLine(int) []string { return nil }
