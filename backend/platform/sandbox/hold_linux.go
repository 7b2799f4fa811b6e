package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
)

// HoldFolder opens an absolute path that has no link in it. Later changes of the path
// do not affect HeldName. It fails with Denied for a link, else NotFound if missing.
func HoldFolder(folder string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, folder, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), folder), nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, bridge.Errorf(bridge.Denied, "%s is not the folder any more that was allowed: a link leads elsewhere", folder)
	case errors.Is(err, fs.ErrNotExist):
		return nil, bridge.Errorf(bridge.NotFound, "the folder %s is not there any more", folder)
	}
	return nil, &os.PathError{Op: "open", Path: folder, Err: err}
}

// HeldName returns a path to the held folder for this process and the processes it starts.
func HeldName(held *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(held.Fd())) }
