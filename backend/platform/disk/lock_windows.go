package disk

import "errors"

// Windows could not replace a locked file. It has no process namespaces, so process
// ids identify the holder there.

func lockFile(string) (*FileLock, error) { return nil, errors.ErrUnsupported }

// IsLocked fails with [errors.ErrUnsupported], because this system has no
// [FileLock].
func IsLocked(string) (bool, error) { return false, errors.ErrUnsupported }
