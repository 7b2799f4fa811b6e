//go:build !linux

package proc

// Namespace returns "": these systems have one list of process ids.
func Namespace() string { return "" }
