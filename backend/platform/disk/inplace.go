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

// TornError reports a file that was partly written in place and whose earlier
// content could not be restored.
type TornError struct {
	Copy  string // the file with the earlier content
	cause error
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%v; what the file held before is in %s", e.cause, e.Copy)
}

// Unwrap returns the cause of the failed write.
func (e *TornError) Unwrap() error { return e.cause }

// WhyNotWritten returns a readable reason why a file could not be written or
// removed, and what to do. The text does not contain the file's path.
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

// Overwrite makes data the content of the file at path, or creates the file. It
// replaces the file as [Files.WriteAtomic] does, unless that is impossible or
// harmful. It writes in place, and keeps owner and mode, in four cases: several
// hard links, a mount point, another user's file, or a folder that accepts no new
// files. It saves the old content in the folder copies before, and restores it if
// the write fails. It fails for root if the file is another user's, and for a
// symlink: pass CanonicalTarget(path). Readers can see a part of the new content
// meanwhile.
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

// writeInPlace changes the bytes of the file at path and keeps its name.
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

// InterruptedCopy returns the copy in the folder copies that an interrupted
// Overwrite of path left there, or "" if there is none.
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

// fill replaces the whole content of an open file with data and syncs the file.
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
