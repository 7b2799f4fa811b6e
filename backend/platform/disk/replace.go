package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace renames the finished file at pending over final, in one step that
// survives a power cut. Both lie in one folder. It fails with an [OtherOwnerError] where
// the file would change its owner.
func (f Files) Replace(pending, final string) error {
	if err := keepsOwner(pending, final); err != nil {
		return fmt.Errorf("replace %s: %w", final, err)
	}
	if err := f.publish(pending, final, replace); err != nil {
		return fmt.Errorf("replace %s: %w", final, err)
	}
	return f.SyncDir(filepath.Dir(final))
}

// RemoveCopied takes the file at path away. The caller has a durable copy of
// its bytes elsewhere. A missing file is no error.
func (f Files) RemoveCopied(path string) error {
	if err := f.before(StepRemove, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return f.SyncDir(filepath.Dir(path))
}

// OtherOwnerError reports a file of another user's: replacing it would make it this user's
// (RWM-10).
type OtherOwnerError struct {
	Owner string // of the file
	Self  string // whose process this is
}

func (e *OtherOwnerError) Error() string {
	return fmt.Sprintf("it belongs to %s, not to you (%s)", e.Owner, e.Self)
}
