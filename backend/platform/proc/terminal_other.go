//go:build !linux

package proc

import "errors"

// InTerminals fails with [errors.ErrUnsupported]: this system does not tell.
func InTerminals(func(Process) bool) ([]InTerminal, error) { return nil, errors.ErrUnsupported }
