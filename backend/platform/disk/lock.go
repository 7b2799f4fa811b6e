package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// FileLock is the lock of one file. The kernel releases it when its process ends,
// and every process on the same kernel sees it, whatever its namespaces are.
type FileLock struct{ file *os.File }

// Release gives the lock up. The file stays. The zero FileLock and nil hold nothing.
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

// TryLock locks the file or folder at path. It fails at once: with [ErrLocked] while somebody
// else holds the lock, and with [errors.ErrUnsupported] where the system or the file system
// has no such locks.
func TryLock(path string) (*FileLock, error) { return lockFile(path) }

// WriteNewLocked writes a new file as [Files.WriteNew] does, and returns its lock. The
// file has its name only once it is locked. Where the system or the file system has no
// such locks, the returned lock holds nothing.
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

// WriteAtomicLocked replaces a file as [Files.WriteAtomic] does, and returns the lock of
// the new one. The caller still holds the lock of the old file, if it had one.
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
