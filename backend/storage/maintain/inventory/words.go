package inventory

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// ShortErr is what people may read of an error.
func ShortErr(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return disk.Reason(err)
}

// ErrText is what people may read of an error that stands alone: unlike ShortErr it
// names the file.
func ErrText(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// IsMissing reports whether nothing is at path.
func IsMissing(path string) bool {
	_, err := os.Lstat(path)
	return IsGone(err)
}

// SizeOf is the file's size, 0 when it cannot be told.
func SizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// KindOf says in words what stands in the place of a file.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// IsGone reports whether an error says that a file is not there.
func IsGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
