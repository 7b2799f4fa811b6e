package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace renames the finished file at pending over final, in one step that
// survives a power cut. Both must be in one folder. If the file's owner would
// change, it fails with an [OtherOwnerError].
func (f Files) Replace(pending, final string) error {
	if err := keepsOwner(pending, final); err != nil {
		return fmt.Errorf("replace %s: %w", final, err)
	}
	if err := f.publish(pending, final, replace); err != nil {
		return fmt.Errorf("replace %s: %w", final, err)
	}
	return f.SyncDir(filepath.Dir(final))
}

// RemoveCopied removes the file at path, of which the caller has a durable copy. A
// missing file is not an error. It fails if the file cannot be removed.
func (f Files) RemoveCopied(path string) error {
	if err := f.before(StepRemove, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return f.SyncDir(filepath.Dir(path))
}

// OtherOwnerError reports that the file belongs to another user: replacing it would
// make it this user's file (RWM-10).
type OtherOwnerError struct {
	Owner string // of the file
	Self  string // user of this process
}

func (e *OtherOwnerError) Error() string {
	return fmt.Sprintf("it belongs to %s, not to you (%s)", e.Owner, e.Self)
}
