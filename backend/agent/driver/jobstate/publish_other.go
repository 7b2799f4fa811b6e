//go:build !linux

package jobstate

import "errors"

// Publish fails with [errors.ErrUnsupported]: without a sandbox, jobs have no
// separate state folder.
func Publish(string, string, string) error { return errors.ErrUnsupported }
