//go:build !linux

package jobstate

import "errors"

// Publish fails with [errors.ErrUnsupported]: jobs have no state folder of their own where
// the system has no sandbox for them.
func Publish(string, string, string) error { return errors.ErrUnsupported }
