package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// TornError reports a file that was written in place in part, and could not be given its
// earlier content back.
type TornError struct {
	Copy  string // the file that has the earlier content
	cause error
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%v; what the file held before is in %s", e.cause, e.Copy)
}

// Unwrap returns why writing failed.
func (e *TornError) Unwrap() error { return e.cause }

// WhyNotWritten says in words for people why the system did not let a file be written or
// removed, without its path, and what to do.
func WhyNotWritten(err error) string {
	if torn := (*TornError)(nil); errors.As(err, &torn) {
		return Reason(torn.cause) + ". It now holds a part of the new text. Its earlier text is in " + torn.Copy + ": copy that back"
	}
	if other, is := errors.AsType[*OtherOwnerError](err); is {
		return other.Error() + ", and Bridge never changes a file's owner. Run this as its owner, or give the file to yourself with `chown`, and try again"
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return "it is mounted read-only. Mount it writable, or edit the file that is mounted there, and try again"
	case errors.Is(err, syscall.EBUSY):
		return "it is mounted as a single file. Unmount it, or edit the file that is mounted there, and try again"
	case errors.Is(err, fs.ErrPermission):
		return "you may not write it. Change its owner or its mode, and try again"
	}
	return Reason(err)
}

// Overwrite makes data the content of the file at path, which need not exist yet. It
// replaces the file as WriteAtomic does, unless that would break it for its owner or
// cannot be done: a file with several hard links, one that is mounted by itself, one of
// another user's, or one in a folder that takes no other files is written in place and
// keeps its owner and mode. Root is refused to write a file of another user's. Before
// that, its content is stored in the folder copies, and comes back where writing fails.
// Readers can see a part of the new content meanwhile. A symlink at path is refused:
// pass CanonicalTarget(path).
func (f Files) Overwrite(path string, data []byte, perm fs.FileMode, copies string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.WriteAtomic(path, data, perm)
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write %s: it is not a regular file", path)
	}
	shared, err := HasHardLinks(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if !shared {
		err = f.WriteAtomic(path, data, perm)
		_, isOthers := errors.AsType[*OtherOwnerError](err)
		if inPlace := preventsReplacing(err) || isOthers && mayWriteOthers(); !inPlace {
			return err
		}
	}
	if err := f.writeInPlace(path, data, copies); err != nil {
		return fmt.Errorf("write %s in place: %w", path, err)
	}
	return nil
}

// writeInPlace changes the bytes of the file at path, not its name.
func (f Files) writeInPlace(path string, data []byte, copies string) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	before, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if err := MakeDir(copies); err != nil {
		return err
	}
	saved, err := f.writeTemp(filepath.Join(copies, filepath.Base(path)), before, PrivateFile)
	if err != nil {
		return err
	}
	if err := f.SyncDir(copies); err != nil {
		return errors.Join(err, dropTemp(saved))
	}
	if err := f.fill(file, data); err != nil {
		if undone := f.fill(file, before); undone != nil {
			return &TornError{Copy: saved, cause: errors.Join(err, undone)}
		}
		return errors.Join(err, dropTemp(saved))
	}
	return dropTemp(saved)
}

// InterruptedCopy returns the copy of the file at path that Overwrite left in the folder
// copies when its process ended while it wrote in place; "" where there is none.
func InterruptedCopy(path, copies string) string {
	entries, err := os.ReadDir(copies)
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "."+filepath.Base(path)+tempMark) {
			return filepath.Join(copies, entry.Name())
		}
	}
	return ""
}

// fill makes data all that an open file holds, on the disk.
func (f Files) fill(file *os.File, data []byte) error {
	if err := f.before(StepWrite, file.Name()); err != nil {
		return err
	}
	if _, err := file.WriteAt(data, 0); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	if err := f.sync(file); err != nil {
		return err
	}
	return checkSize(file, int64(len(data)))
}
