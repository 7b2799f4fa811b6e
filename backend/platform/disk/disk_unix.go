//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// replace renames the file at from to the path to, and replaces an existing file there.
func replace(from, to string) error { return os.Rename(from, to) }

// publishNew renames the file at from to the new path to; of several callers one
// succeeds. A hard link decides that in one step. On file systems without hard
// links (FAT, some network and phone storage), publishNew reserves the name first.
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

// resolve returns the path of an existing file with every symlink resolved.
func resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

// HasHardLinks reports whether the existing file at path has further names. It
// fails with fs.ErrNotExist if there is no such file.
func HasHardLinks(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, fmt.Errorf("count the names of %s: %w", path, err)
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && stat.Nlink > 1, nil
}

// preventsReplacing reports whether err means that another file cannot be renamed
// over the path: the path is a mount point, or its folder accepts no new files.
// Writing the file in place may still work.
func preventsReplacing(err error) bool {
	return slices.ContainsFunc([]error{syscall.EBUSY, syscall.EXDEV, syscall.EROFS, syscall.EACCES, syscall.EPERM}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}

// keepsOwner fails with an [OtherOwnerError] if the file at path has another owner
// than the finished file at pending, which will replace it.
func keepsOwner(pending, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // nothing is replaced, or replacing it says what is wrong
	}
	current, err := os.Lstat(pending)
	if err != nil {
		return err
	}
	if old, own := OwnerOf(info), OwnerOf(current); old != own {
		return &OtherOwnerError{Owner: UserName(old), Self: UserName(os.Geteuid())}
	}
	return nil
}

// OwnerOf returns the user id of a file's owner, or -1 if the system does not report it.
func OwnerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// UserName returns the user's name and id in a readable form.
func UserName(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", found.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// mayWriteOthers reports whether this process may write another user's file in place. The file's
// mode limits an ordinary process, so the owner allowed the write; it does not limit root.
func mayWriteOthers() bool { return os.Geteuid() != 0 }
