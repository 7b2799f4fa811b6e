//go:build !linux

package sandbox

// PlanCgroup returns "": this system has no control groups.
func PlanCgroup(Mark) string { return "" }

// MakeCgroup fails with [ErrUnavailable]: this system has no control groups.
func MakeCgroup(Mark, int) error { return ErrUnavailable }

// RemoveCgroup does nothing and never fails: this system has no control groups.
func RemoveCgroup(Mark) error { return nil }

// HasCgroup reports false: this system has no control groups.
func HasCgroup(Mark, int) bool { return false }

// inCgroup returns no processes.
func inCgroup(Mark) ([]int, error) { return nil, nil }

// killCgroup does nothing.
func killCgroup(Mark) error { return nil }

// isInCgroup returns false.
func isInCgroup(int, Mark) bool { return false }
