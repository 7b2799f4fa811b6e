//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// replace gives from the name to, in place of what had it.
func replace(from, to string) error { return os.Rename(from, to) }

// publishNew gives from the name to, which only one of several callers gets.
// A hard link decides that in one step. File systems without hard links (FAT,
// some network and phone storage) decide it by reserving the name first.
func publishNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	reserved, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, PrivateFile)
	if err != nil {
		return err
	}
	if err := reserved.Close(); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func syncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// resolve returns the path of an existing file with every link followed.
func resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

// HasHardLinks reports whether the existing file at path has other names, too.
func HasHardLinks(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, fmt.Errorf("count the names of %s: %w", path, err)
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && stat.Nlink > 1, nil
}

// preventsReplacing reports whether err says that the name cannot be given to another
// file, which says nothing about the file's own bytes: it is a mount point, or its
// folder takes no files.
func preventsReplacing(err error) bool {
	return slices.ContainsFunc([]error{syscall.EBUSY, syscall.EXDEV, syscall.EROFS, syscall.EACCES, syscall.EPERM}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}
