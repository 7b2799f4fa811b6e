package proc

import "errors"

// Replace fails with [errors.ErrUnsupported] on Windows.
func Replace(string, []string) error { return errors.ErrUnsupported }
