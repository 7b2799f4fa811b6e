package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// FileLock is the lock of one file. The kernel releases it when its process ends.
// Every process on the same kernel sees it, in any namespace.
type FileLock struct{ file *os.File }

// Release releases the lock and leaves the file. It does nothing for nil and the
// zero FileLock. It fails if the file cannot be closed.
func (l *FileLock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// ErrLocked reports that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("the file is locked")

// TryLock locks the file or folder at path without waiting. It fails with
// [ErrLocked] if the lock is held, and with [errors.ErrUnsupported] if the system
// or the file system has no such locks.
func TryLock(path string) (*FileLock, error) { return lockFile(path) }

// WriteNewLocked writes a new file as [Files.WriteNew] does and returns its lock.
// It locks the file before it publishes the name. If the system or the file system
// has no such locks, the returned lock holds nothing. It fails as WriteNew does.
func (f Files) WriteNewLocked(path string, data []byte) (*FileLock, error) {
	lock, err := f.writeLocked(path, data, publishNew)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	if err := f.SyncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, errors.Join(err, dropTemp(path), lock.Release()))
	}
	return lock, nil
}

// WriteAtomicLocked replaces a file as [Files.WriteAtomic] does and returns the new
// file's lock. The caller still has the lock of the old file, if it had one. It
// fails if the file cannot be written. The lock is not nil if only the sync of the
// folder failed.
func (f Files) WriteAtomicLocked(path string, data []byte) (*FileLock, error) {
	lock, err := f.writeLocked(path, data, replace)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return lock, f.SyncDir(filepath.Dir(path))
}

func (f Files) writeLocked(path string, data []byte, publish func(from, to string) error) (*FileLock, error) {
	temp, err := f.writeTemp(path, data, PrivateFile)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(temp)
	if errors.Is(err, errors.ErrUnsupported) {
		lock, err = &FileLock{}, nil
	}
	if err == nil {
		err = f.publish(temp, path, publish)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release(), dropTemp(temp))
	}
	return lock, nil
}
