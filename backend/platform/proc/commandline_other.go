//go:build !linux

package proc

// CommandLine returns nil: Bridge reads the arguments of a process only on Linux.
func CommandLine(int) []string { return nil }
