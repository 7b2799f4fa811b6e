package jobstate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Publish gives the file private, which the job may have made, the second name real
// in the owner's folder; on another file system it copies the file. It keeps an
// existing real. It fails with [ErrNotPlain] if private is not a regular file of
// this user with one name, or if a part of its path below base is a link. So the
// job's writable files never lead to files that it may not write.
func Publish(base, private, real string) error {
	rel, err := filepath.Rel(base, private)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("publish %s: %w", private, ErrNotPlain)
	}
	folder, err := os.Open(base)
	if err != nil {
		return fmt.Errorf("publish a transcript: %w", err)
	}
	defer folder.Close()
	fd, err := unix.Openat2(int(folder.Fd()), rel, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("publish %s: %w", private, fs.ErrNotExist)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("publish %s: %w", private, ErrNotPlain)
	case err != nil:
		return fmt.Errorf("publish %s: %w", private, err)
	}
	file := os.NewFile(uintptr(fd), private)
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return fmt.Errorf("publish %s: %w", private, err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG || info.Nlink != 1 || int(info.Uid) != os.Geteuid() {
		return fmt.Errorf("publish %s: %w", private, ErrNotPlain)
	}
	if err := os.MkdirAll(filepath.Dir(real), 0o700); err != nil {
		return fmt.Errorf("publish a transcript: %w", err)
	}
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, real, unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EPERM) {
		return copyTo(file, real)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("publish %s: %w", private, err)
	}
	return nil
}

func copyTo(from io.Reader, real string) error {
	file, err := os.OpenFile(real, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish a transcript: %w", err)
	}
	_, err = io.Copy(file, from)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("publish a transcript: %w", err)
	}
	return nil
}
