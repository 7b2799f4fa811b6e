package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// While another process reads the target or scans the new file, Windows briefly
// refuses a rename. Half a second outlasts every scanner seen so far.
const (
	renameTries = 25
	renamePause = 20 * time.Millisecond
)

// replace renames the file at from to the path to, and writes through to the disk.
func replace(from, to string) error {
	return move(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

// publishNew renames the file at from to the new path to; of several callers one succeeds.
func publishNew(from, to string) error { return move(from, to, windows.MOVEFILE_WRITE_THROUGH) }

func move(from, to string, flags uint32) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err = windows.MoveFileEx(source, target, flags)
		if err == nil {
			return nil
		}
		if try == renameTries || !passing(err) {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		time.Sleep(renamePause)
	}
}

// passing reports whether err is one that another process's open handle causes.
func passing(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
		errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

func syncDir(string) error { return nil }

// resolve returns the final path of an existing file. filepath.EvalSymlinks does
// not follow junctions, which can lead a path out of an allowed folder. Therefore
// resolve opens a handle and asks Windows for its name.
func resolve(path string) (string, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	handle, err := windows.CreateFile(name, 0,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return "", &os.PathError{Op: "resolve", Path: path, Err: err}
	}
	defer func() { _ = windows.CloseHandle(handle) }() // opened without access rights: no data can be lost
	buffer := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetFinalPathNameByHandle(handle, &buffer[0], uint32(len(buffer)), 0)
	if err != nil {
		return "", &os.PathError{Op: "resolve", Path: path, Err: err}
	}
	if int(n) > len(buffer) {
		return "", &os.PathError{Op: "resolve", Path: path, Err: windows.ERROR_FILENAME_EXCED_RANGE}
	}
	return withoutDevicePrefix(windows.UTF16ToString(buffer[:n])), nil
}

// withoutDevicePrefix turns \\?\C:\x into C:\x and \\?\UNC\host\share into \\host\share.
func withoutDevicePrefix(path string) string {
	if rest, ok := strings.CutPrefix(path, `\\?\UNC\`); ok {
		return `\\` + rest
	}
	return strings.TrimPrefix(path, `\\?\`)
}

// HasHardLinks reports whether the existing file at path has further names. It
// fails with fs.ErrNotExist if there is no such file.
func HasHardLinks(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("count the names of %s: %w", path, err)
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(windows.Handle(file.Fd()), &info)
	if err = errors.Join(err, file.Close()); err != nil {
		return false, fmt.Errorf("count the names of %s: %w", path, err)
	}
	return info.NumberOfLinks > 1, nil
}

// preventsReplacing returns false. On Windows no file is a mount point, and Bridge
// does not write in place a file that another program holds open.
func preventsReplacing(error) bool { return false }

// keepsOwner returns nil: replacing a file keeps its security descriptor.
func keepsOwner(string, string) error { return nil }

func mayWriteOthers() bool { return true }
