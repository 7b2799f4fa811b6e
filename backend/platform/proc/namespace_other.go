//go:build !linux

package proc

// Namespace returns "": these systems have one list of process numbers.
func Namespace() string { return "" }
