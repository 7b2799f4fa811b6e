// Package jobstate gives a job a separate state folder of an agent, so that it changes nothing
// that another session of the same agent reads or runs (SEC-05). Data that the job only reads
// are links to the owner's files. Data that its session writes is in the job's folder, and the
// session's transcript is published to the owner's folder under its own name.
package jobstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrNotPlain reports a path that is not a regular file of this user with exactly
// one name, or that a link leads to.
var ErrNotPlain = errors.New("it is no regular file, or a link leads to it")

// Mirror creates the folder private with a link to each entry of the owner's folder real. The
// entries named in own become empty folders instead. It keeps existing entries of private from
// an earlier run of the same job. A missing real has no entries. Mirror fails if a folder or a
// link cannot be created, or if real cannot be read.
func Mirror(real, private string, own ...string) error {
	for _, name := range append([]string{"."}, own...) {
		if err := os.MkdirAll(filepath.Join(private, name), 0o700); err != nil {
			return fmt.Errorf("make the job's state folder: %w", err)
		}
	}
	entries, err := os.ReadDir(real)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the agent's state folder: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(own, entry.Name()) {
			if err := Link(filepath.Join(real, entry.Name()), filepath.Join(private, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Link creates the symbolic link path to target, and the folders above path. It keeps an
// existing path. It fails if the folder or the link cannot be created.
func Link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the job's state folder: %w", err)
	}
	if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link the agent's state: %w", err)
	}
	return nil
}

// IsPlain reports whether path is a regular file, and not a link.
func IsPlain(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
