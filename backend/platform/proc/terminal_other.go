//go:build !linux

package proc

import "errors"

// InTerminals fails with [errors.ErrUnsupported] on this system.
func InTerminals(func(Process) bool) ([]InTerminal, error) { return nil, errors.ErrUnsupported }
