package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Canonical returns the absolute path of an existing file or folder with every
// symlink, and on Windows every junction, resolved. Two paths name the same file
// exactly if their canonical forms are equal, on Windows except for case. It fails
// with fs.ErrNotExist if there is no such file.
func Canonical(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("canonical path of %s: %w", path, err)
	}
	resolved, err := resolve(absolute)
	if err != nil {
		return "", fmt.Errorf("canonical path of %s: %w", path, err)
	}
	return resolved, nil
}

// CanonicalTarget is [Canonical] for a path that may not exist yet. It resolves the
// existing folders and appends the missing rest. It fails for a dangling symlink,
// because a later writer could decide the symlink's target.
func CanonicalTarget(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("canonical path of %s: %w", path, err)
	}
	_, err = os.Lstat(absolute)
	if err == nil {
		return Canonical(absolute)
	}
	parent := filepath.Dir(absolute)
	if !errors.Is(err, fs.ErrNotExist) || parent == absolute {
		return "", fmt.Errorf("canonical path of %s: %w", path, err)
	}
	resolved, err := CanonicalTarget(parent)
	if err != nil {
		return "", err
	}
	return filepath.Join(resolved, filepath.Base(absolute)), nil
}
