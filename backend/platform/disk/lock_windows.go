package disk

import "errors"

// A locked file could not be replaced on Windows, and Windows has no namespaces of
// processes: process numbers serve there.

func lockFile(string) (*FileLock, error) { return nil, errors.ErrUnsupported }

// IsLocked reports whether a process holds the [FileLock] of the file at path. It fails
// with [errors.ErrUnsupported] where there are no locks.
func IsLocked(string) (bool, error) { return false, errors.ErrUnsupported }
