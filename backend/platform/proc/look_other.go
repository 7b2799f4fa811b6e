//go:build !linux

package proc

import "errors"

// LookAt fails with [errors.ErrUnsupported]: this system does not report the details.
func LookAt(int) (Look, error) { return Look{}, errors.ErrUnsupported }
