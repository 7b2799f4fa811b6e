package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Folders checks which folders of this PC must not be shared.
type Folders struct {
	// Reserved fails for a folder in which no job may write (SEC-09).
	Reserved func(folder string) error
}

// check refuses folders that must not be allowed, and returns the others in their
// stored form. It does not check folders that were already allowed: the owner can
// always revoke a part, whatever the state of the rest.
func (f Folders) check(before, wanted []string) ([]string, error) {
	var roots []string
	for _, root := range wanted {
		if !slices.Contains(before, root) {
			canonical, err := checkRoot(root)
			if err != nil {
				return nil, err
			}
			if err := f.Reserved(canonical); err != nil {
				return nil, bridge.WithCause(bridge.Invalid, err, err.Error())
			}
			root = canonical
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// checkRoot returns the folder in its stored form.
func checkRoot(root string) (string, error) {
	if strings.TrimSpace(root) == "" {
		return "", bridge.Errorf(bridge.Invalid, "a folder is missing: write it out, such as %s", example())
	}
	if !filepath.IsAbs(root) {
		return "", bridge.Errorf(bridge.Invalid, "%q is not an absolute folder: write it out from the beginning, such as %s", root, example())
	}
	canonical, err := disk.Canonical(root)
	if errors.Is(err, fs.ErrNotExist) {
		return "", bridge.Errorf(bridge.Invalid, "there is no folder %s on this PC", root)
	}
	if err != nil {
		return "", bridge.WithCause(bridge.Invalid, err, fmt.Sprintf("the folder %s cannot be looked at: %s", root, disk.Reason(err)))
	}
	if info, err := os.Stat(canonical); err != nil || !info.IsDir() {
		return "", bridge.Errorf(bridge.Invalid, "%s is no folder", root)
	}
	if isTop(canonical) {
		return "", bridge.Errorf(bridge.Invalid, "%s is everything on this PC: name the folders in which jobs may work, such as %s", root, example())
	}
	written := root
	if trimmed := strings.TrimRightFunc(root, func(r rune) bool { return r == '/' || r == filepath.Separator }); trimmed != "" {
		written = trimmed
	}
	if !sameFolder(written, canonical) {
		return "", bridge.Errorf(bridge.Invalid, "%s is really %s: allow that one, so that what you read is what is allowed", root, canonical)
	}
	return canonical, nil
}

func example() string {
	if runtime.GOOS == "windows" {
		return `C:\Users\me\src`
	}
	return "/home/me/src"
}

func sameFolder(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// isTop reports whether the folder is the root of a disk.
func isTop(folder string) bool { return filepath.Dir(folder) == folder }

// warning returns a sentence about an allowed folder that shares much, or leads
// elsewhere. It returns "" for others.
func (f Folders) warning(root string) string {
	canonical, err := disk.Canonical(root)
	if err != nil {
		return fmt.Sprintf("%s is not there now: no job starts in it.", root)
	}
	if err := f.Reserved(canonical); err != nil {
		return fmt.Sprintf("%s allows nothing: %s.", root, err)
	}
	switch {
	case isTop(filepath.Dir(canonical)):
		return fmt.Sprintf("%s is a very broad folder: everything below it is allowed.", root)
	case !sameFolder(root, canonical):
		return fmt.Sprintf("%s is really %s: that is what is allowed.", root, canonical)
	}
	return ""
}
