package inventory

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// ShortErr returns an error for people.
func ShortErr(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return disk.Reason(err)
}

// ErrText returns an error for people that is shown alone: unlike ShortErr it names the
// file.
func ErrText(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// IsMissing reports whether no file exists at path.
func IsMissing(path string) bool {
	_, err := os.Lstat(path)
	return IsGone(err)
}

// SizeOf returns the file's size, 0 if it is unknown.
func SizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// KindOf describes a file's type for people.
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

// IsGone reports whether an error means that a file does not exist.
func IsGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
