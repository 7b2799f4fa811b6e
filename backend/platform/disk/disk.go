// Package disk makes files durable. A write is either complete and on the disk or
// did not happen. A move never passes through a state without any copy. A path is
// made canonical before it is compared with an allowed folder.
//
// Every write path is a method of [Files]. Its Before field lets a test fail or
// kill the process at any single step. The package functions use the zero Files.
package disk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"bridge/backend/core/bridge"
)

// Step names one step of a durable write. The constants are in the order of execution.
type Step string

// The steps before which a durable write calls Files.Before.
const (
	StepCreate  Step = "create"   // make the temporary file
	StepWrite   Step = "write"    // write the bytes
	StepSync    Step = "sync"     // flush the file to the disk
	StepPublish Step = "publish"  // give the file its name
	StepSyncDir Step = "sync-dir" // flush the folder that holds the name
	StepRemove  Step = "remove"   // remove a source that has a durable copy
)

// Files writes durably. The zero value is ready for use.
type Files struct {
	// Before, if set, is called before each step with the path that the step will
	// touch. If Before returns an error, the step fails with that error.
	Before func(step Step, path string) error

	// link replaces os.Link in tests of file systems without hard links.
	link func(from, to string) error
}

// tempMark is the middle part of the name of every unfinished file.
const tempMark = ".bridge-tmp-"

// PrivateFile and PrivateDir are the modes of everything inside the home.
const (
	PrivateFile fs.FileMode = 0o600
	PrivateDir  fs.FileMode = 0o700
)

// WriteAtomic replaces the file at path with data and sets its mode to perm.
// Readers see the old bytes or the new ones, never a mixture. After a nil error the
// new bytes survive a power cut. A symlink at path is itself replaced: pass
// Canonical(path) to write to its target. If the file's owner would change, it
// fails with an [OtherOwnerError] and changes nothing.
func WriteAtomic(path string, data []byte, perm fs.FileMode) error {
	return Files{}.WriteAtomic(path, data, perm)
}

// WriteNew is [WriteAtomic] for a file that must not exist yet. If several
// processes call it, exactly one succeeds; the others fail with fs.ErrExist.
func WriteNew(path string, data []byte, perm fs.FileMode) error {
	return Files{}.WriteNew(path, data, perm)
}

// Move moves the regular file src to dst, also across file systems. It fails with
// fs.ErrExist if dst exists. A crash may leave both files, but never neither.
func Move(src, dst string) error { return Files{}.Move(src, dst) }

// Publish renames the file or folder at pending to final in one step that survives a power
// cut. Both must be on one file system. It fails with fs.ErrExist if final exists.
func Publish(pending, final string) error { return Files{}.Publish(pending, final) }

// WriteAtomic does what the package function [WriteAtomic] does, and fails as that
// does.
func (f Files) WriteAtomic(path string, data []byte, perm fs.FileMode) error {
	return f.WriteAtomicBy(path, all(data), perm)
}

// all writes data in one piece.
func all(data []byte) func(io.Writer) error {
	return func(writer io.Writer) error {
		_, err := writer.Write(data)
		return err
	}
}

// WriteAtomicBy is WriteAtomic for the bytes that the function write streams. It
// also fails if write does, and then leaves the file unchanged.
func (f Files) WriteAtomicBy(path string, write func(io.Writer) error, perm fs.FileMode) error {
	temp, err := f.writeTempBy(path, write, perm)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := keepsOwner(temp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, dropTemp(temp)))
	}
	if err := f.publish(temp, path, replace); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, dropTemp(temp)))
	}
	return f.SyncDir(filepath.Dir(path))
}

// WriteNew does what the package function [WriteNew] does, and fails as that does.
func (f Files) WriteNew(path string, data []byte, perm fs.FileMode) error {
	temp, err := f.writeTemp(path, data, perm)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if err := f.publish(temp, path, publishNew); err != nil {
		return fmt.Errorf("create %s: %w", path, errors.Join(err, dropTemp(temp)))
	}
	if err := f.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("create %s: %w", path, errors.Join(err, dropTemp(path))) // a failed call leaves no file
	}
	return nil
}

// AppendSync appends line and a newline to the file at path and syncs the file. It
// creates a missing file with perm. If a crash left an incomplete last line, it
// ends that line first. It fails if line contains a newline.
func (f Files) AppendSync(path string, line []byte, perm fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("append to %s: %w", path, err)
		}
	}()
	if strings.ContainsRune(string(line), '\n') {
		return errors.New("a line may not contain a newline")
	}
	if err := f.before(StepCreate, path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	torn, size, err := tornTail(file)
	if err != nil {
		return err
	}
	record := append(append([]byte{}, line...), '\n')
	if torn {
		record = append([]byte{'\n'}, record...)
	}
	if err := f.writeAndSync(file, record); err != nil {
		return err
	}
	if size > 0 {
		return nil
	}
	return f.SyncDir(filepath.Dir(path))
}

// Copy copies the regular file src to dst and verifies the copy. It returns the
// SHA-256 (hex) and the size in bytes of the copy. It fails with fs.ErrExist if dst
// exists.
func (f Files) Copy(src, dst string) (sum string, size int64, err error) {
	temp, sum, size, err := f.copyTemp(src, dst)
	if err != nil {
		return "", 0, fmt.Errorf("copy %s: %w", src, err)
	}
	if err := f.publish(temp, dst, publishNew); err != nil {
		return "", 0, fmt.Errorf("copy %s: %w", src, errors.Join(err, dropTemp(temp)))
	}
	return sum, size, f.SyncDir(filepath.Dir(dst))
}

// Move does what the package function [Move] does, and fails as that does. It also
// fails if src is not a regular file.
func (f Files) Move(src, dst string) error {
	if err := requireRegular(src); err != nil {
		return fmt.Errorf("move %s: %w", src, err)
	}
	if err := f.shareOrCopy(src, dst); err != nil {
		return fmt.Errorf("move %s: %w", src, err)
	}
	if err := f.before(StepRemove, src); err != nil {
		return fmt.Errorf("move %s: %w", src, err)
	}
	if err := os.Remove(src); err != nil {
		return fmt.Errorf("move %s: its copy is %s: %w", src, dst, err)
	}
	return f.SyncDir(filepath.Dir(src))
}

// Publish does what the package function [Publish] does, and fails as that does.
func (f Files) Publish(pending, final string) error {
	if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish %s: %w", final, errors.Join(fs.ErrExist, err))
	}
	if err := f.publish(pending, final, replace); err != nil {
		return fmt.Errorf("publish %s: %w", final, err)
	}
	if err := f.SyncDir(filepath.Dir(final)); err != nil {
		return err
	}
	return f.SyncDir(filepath.Dir(pending))
}

// SyncDir flushes the folder's list of names to the disk. On Windows it does
// nothing, because the write-through rename already made the names durable. It
// fails if the folder cannot be opened or synced.
func (f Files) SyncDir(dir string) error {
	if err := f.before(StepSyncDir, dir); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return syncDir(dir)
}

// SyncDir flushes the folder's list of names to the disk, and fails as
// [Files.SyncDir] does.
func SyncDir(dir string) error { return Files{}.SyncDir(dir) }

// MakeDir creates dir and its missing parents, private to the user, and makes the
// new names durable. It leaves an existing folder unchanged. It fails if a file has
// that name, or the parent folder is not writable.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := MakeDir(parent); err != nil { // each new name is synced in its parent folder
			return err
		}
	}
	err := os.Mkdir(dir, PrivateDir)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			err = nil // another process created it meanwhile
		}
	}
	if err == nil {
		err = os.Chmod(dir, PrivateDir) // the umask may have removed owner permissions
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", dir, err)
	}
	return SyncDir(parent)
}

// TryWrite writes a small file into dir and removes it again. It fails if the disk
// does not accept the write.
func TryWrite(dir string) error {
	temp, err := Files{}.writeTemp(filepath.Join(dir, "try"), make([]byte, blockBytes), PrivateFile)
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	return dropTemp(temp)
}

// blockBytes is the size of the test file of [TryWrite]: one block of every file system.
const blockBytes = 4096

// Reason returns a readable reason for a refused system call, without the path. The
// surrounding sentence already names the path.
func Reason(err error) string {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full"
	case errors.As(err, &pathErr):
		return pathErr.Err.Error()
	case errors.As(err, &linkErr):
		return linkErr.Err.Error()
	}
	return err.Error()
}

// Checksum returns the SHA-256 (hex) and the size in bytes of the file at path. It
// fails if the file cannot be read.
func Checksum(path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("checksum: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if size, err = io.Copy(hash, file); err != nil {
		return "", 0, fmt.Errorf("checksum of %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// TempName returns a new name for an unfinished file in the folder of path.
func TempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempMark+rand.Text()[:10])
}

// IsTemp reports whether name was made by [TempName], so an unfinished write left it.
func IsTemp(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".") && strings.Contains(base, tempMark)
}

func (f Files) before(step Step, path string) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(step, path)
}

func (f Files) publish(from, to string, rename func(from, to string) error) error {
	if err := f.before(StepPublish, to); err != nil {
		return err
	}
	return rename(from, to)
}

// writeTemp writes data into a new file in the folder of path and returns its name.
// If it fails, it leaves no file.
func (f Files) writeTemp(path string, data []byte, perm fs.FileMode) (string, error) {
	return f.writeTempBy(path, all(data), perm)
}

func (f Files) writeTempBy(path string, write func(io.Writer) error, perm fs.FileMode) (string, error) {
	file, err := f.createTemp(path, perm)
	if err != nil {
		return "", err
	}
	counted := &counter{file: file}
	if err = f.before(StepWrite, file.Name()); err == nil {
		err = write(counted)
	}
	if err == nil {
		err = f.sync(file)
	}
	if err == nil {
		err = checkSize(file, counted.written)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, dropTemp(file.Name()))
	}
	return file.Name(), nil
}

// counter counts the bytes that are written to a file.
type counter struct {
	file    *os.File
	written int64
}

// Write writes to the file and counts the bytes. It fails if the file cannot be
// written.
func (c *counter) Write(data []byte) (int, error) {
	n, err := c.file.Write(data)
	c.written += int64(n)
	return n, err
}

// copyTemp copies src into a new file in the folder of dst, rereads it and compares the sums.
func (f Files) copyTemp(src, dst string) (temp, sum string, size int64, err error) {
	if err := requireRegular(src); err != nil {
		return "", "", 0, err
	}
	in, err := os.Open(src)
	if err != nil {
		return "", "", 0, err
	}
	defer in.Close()
	out, err := f.createTemp(dst, PrivateFile)
	if err != nil {
		return "", "", 0, err
	}
	temp = out.Name()
	hash := sha256.New()
	if err = f.before(StepWrite, temp); err == nil {
		size, err = io.Copy(io.MultiWriter(out, hash), in)
	}
	if err == nil {
		err = f.sync(out)
	}
	err = errors.Join(err, out.Close())
	sum = hex.EncodeToString(hash.Sum(nil))
	if err == nil {
		err = requireSum(temp, sum)
	}
	if err != nil {
		return "", "", 0, errors.Join(err, dropTemp(temp))
	}
	return temp, sum, size, nil
}

// shareOrCopy makes dst a hard link to src. On a file system without hard links, it
// makes a verified copy.
func (f Files) shareOrCopy(src, dst string) error {
	if err := f.before(StepPublish, dst); err != nil {
		return err
	}
	link := f.link
	if link == nil {
		link = os.Link
	}
	switch err := link(src, dst); {
	case err == nil:
		return f.SyncDir(filepath.Dir(dst))
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return err
	}
	_, _, err := f.Copy(src, dst)
	return err
}

func (f Files) createTemp(path string, perm fs.FileMode) (*os.File, error) {
	temp := TempName(path)
	if err := f.before(StepCreate, temp); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	// The umask may have removed permissions that the caller requested.
	if err := os.Chmod(temp, perm); err != nil {
		return nil, errors.Join(err, file.Close(), dropTemp(temp))
	}
	return file, nil
}

func (f Files) writeAndSync(file *os.File, data []byte) error {
	if err := f.before(StepWrite, file.Name()); err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return f.sync(file)
}

func (f Files) sync(file *os.File) error {
	if err := f.before(StepSync, file.Name()); err != nil {
		return err
	}
	return file.Sync()
}

// dropTemp removes a file of the current, failing call. The call has not reported
// the bytes as stored, so nothing is lost.
func dropTemp(temp string) error { return os.Remove(temp) }

func checkSize(file *os.File, want int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != want {
		return fmt.Errorf("the file holds %s, not the %d written", bridge.Counted(int(info.Size()), "byte"), want)
	}
	return nil
}

func requireSum(path, want string) error {
	got, _, err := Checksum(path)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s does not hold what was written", path)
	}
	return nil
}

// requireRegular fails for symlinks, folders and devices. Moving or copying their
// target would not be what the caller asked for.
func requireRegular(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// tornTail reports whether the file ends inside a line, and the file's size in bytes.
func tornTail(file *os.File) (torn bool, size int64, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, 0, err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil {
		return false, 0, err
	}
	return last[0] != '\n', info.Size(), nil
}
