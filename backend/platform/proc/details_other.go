//go:build !linux

package proc

import "errors"

// Inspect fails with [errors.ErrUnsupported]: this system does not report the details.
func Inspect(int) (Details, error) { return Details{}, errors.ErrUnsupported }
