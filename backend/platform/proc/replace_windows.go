package proc

import "errors"

// Replace is nothing that a program can do here.
func Replace(string, []string) error { return errors.ErrUnsupported }
