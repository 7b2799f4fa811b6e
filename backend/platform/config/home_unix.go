//go:build !windows

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

const userHomeVariable = "HOME"

// maxSocketPath is the longest socket path that every Unix accepts, in bytes. The
// limits with the final zero are 104 on macOS and the BSDs, and 108 on Linux.
const maxSocketPath = 103

func foldPath(path string) string { return path }

func socketOf(h Home, name string) string {
	if path := h.at(name + ".sock"); len(path) <= maxSocketPath {
		return path
	}
	base := h.Key() + "-" + name + ".sock"
	shared, private := filepath.Join(runtimeDir(os.Geteuid()), base), privateDir()
	if private == "" || isOurSocket(shared) {
		return shared
	}
	if path := filepath.Join(private, base); len(path) <= maxSocketPath {
		return path
	}
	return shared
}

// runtimeDir returns the folder for the sockets of homes with long paths, if the
// user has no privateDir; else it holds links to them. It does not use TMPDIR,
// which differs between the processes of one user.
func runtimeDir(uid int) string { return "/tmp/bridge-" + strconv.Itoa(uid) }

// privateDir returns XDG_RUNTIME_DIR for the sockets of homes with long paths,
// because no other user can create files there (SEC-13). It returns "" if the
// variable is unset or the folder is not private to this user.
func privateDir() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		return ""
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || disk.OwnerOf(info) != os.Geteuid() || info.Mode().Perm() != disk.PrivateDir {
		return ""
	}
	return filepath.Join(dir, "bridge")
}

// isOurSocket reports whether path is a socket in a folder of this user. Its broker
// has no private folder or is older than privateDir; it may have ended.
func isOurSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0 && checkSocketDir(filepath.Dir(path)) == nil
}

// linkSockets links the sockets of a private folder into runtimeDir, for programs that
// only know runtimeDir: older ones, and ones without XDG_RUNTIME_DIR. If another user
// owns runtimeDir, those programs report it, and the others do not need the links.
func linkSockets(h Home) {
	folder := runtimeDir(os.Geteuid())
	if os.Mkdir(folder, disk.PrivateDir) != nil && checkSocketDir(folder) != nil {
		return
	}
	for _, name := range []string{"bridge", "window"} {
		socket, link := socketOf(h, name), filepath.Join(folder, h.Key()+"-"+name+".sock")
		if current, err := os.Readlink(link); socket == link || err == nil && current == socket {
			continue
		}
		temp := disk.TempName(link)
		if os.Symlink(socket, temp) == nil {
			_ = os.Rename(temp, link) // a program that cannot find it reports that
		}
	}
}

// Ensure creates a missing home folder and makes it private, unless it holds files of
// other programs. It fails with Denied if another user owns the home or others can
// write to it. It fails with Invalid if the home is a file, or holds only other files,
// and with Storage if it is not writable. A failed Ensure has changed nothing.
func (h Home) Ensure() error {
	if err := checkOwner(h); err != nil {
		return err
	}
	info, err := os.Stat(h.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := disk.MakeDir(h.dir); err != nil {
			return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made: %w", h.dir, err)
		}
	case err != nil:
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be looked at: %w", h.dir, err)
	default:
		if err := adopt(h, info); err != nil {
			return err
		}
	}
	if filepath.Dir(h.Socket()) == h.dir {
		return nil
	}
	if err := ensureRuntimeDir(h); err != nil {
		return err
	}
	linkSockets(h)
	return nil
}

// CheckOwner fails with Denied if this process would create files with another
// owner than the folder's (RWM-10). It checks the folder, or the nearest existing
// folder above it. A non-root process may use a writable folder of root, because
// containers give such folders to users without a name.
func CheckOwner(folder string) error {
	existing, info, err := nearestFolder(folder)
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the folder %s cannot be looked at: %w", folder, err)
	}
	owner, self := disk.OwnerOf(info), os.Geteuid()
	isOpen := self != 0 && (owner == 0 || existing != folder) && unix.Access(existing, unix.W_OK|unix.X_OK) == nil
	if owner == self || isOpen {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "%s belongs to %s, not to you (%s). Bridge leaves no files of yours there: run it as that user, or set HOME or BRIDGE_HOME to a folder of your own",
		existing, disk.UserName(owner), disk.UserName(self))
}

// nearestFolder returns the folder at path, or the nearest existing folder above it.
func nearestFolder(path string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || path == filepath.Dir(path) {
			return path, info, err
		}
		path = filepath.Dir(path)
	}
}

// adopt checks an existing home and makes it private.
func adopt(h Home, info fs.FileInfo) error {
	if !info.IsDir() {
		return errIsFile(h)
	}
	if owner := disk.OwnerOf(info); owner != os.Geteuid() {
		return bridge.Errorf(bridge.Denied, "the home folder %s belongs to %s, not to you (%s): run as that user or choose another folder with --home or BRIDGE_HOME",
			h.dir, disk.UserName(owner), disk.UserName(os.Geteuid()))
	}
	if err := unix.Access(h.dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s is not writable: %w", h.dir, err)
	}
	if err := CheckContents(h); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if stranger := strangerIn(h); stranger != "" { // other users may need to read it
		return checkShared(h, info, stranger)
	}
	if err := os.Chmod(h.dir, disk.PrivateDir); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made private: %w", h.dir, err)
	}
	return nil
}

// checkShared fails with Denied if others can write to a home that also holds files
// of other programs. Bridge must not change the mode of such a folder.
func checkShared(h Home, info fs.FileInfo, stranger string) error {
	if info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "others can write to the home folder %s, and it holds files that are not Bridge's, such as %s: move these out, or run `chmod go= %s`",
		h.dir, bridge.OneLine(stranger), quoteWord(h.dir))
}

func ensureRuntimeDir(h Home) error {
	dir := filepath.Dir(h.Socket())
	if err := os.Mkdir(dir, disk.PrivateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return bridge.Errorf(bridge.Storage, "the socket folder %s cannot be made: %w", dir, err)
	}
	return h.CheckSocket()
}

// CheckSocket checks that the folder of Socket belongs to this user alone, so no other
// user can have created the endpoint. It changes nothing. It fails with NotFound if the
// folder is missing, so no broker runs, and with Denied if others can write.
func (h Home) CheckSocket() error { return checkSocketDir(filepath.Dir(h.Socket())) }

func checkSocketDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return bridge.Errorf(bridge.NotFound, "the socket folder %s does not exist", dir)
	}
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the socket folder %s cannot be looked at: %w", dir, err)
	}
	if !info.IsDir() || disk.OwnerOf(info) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return bridge.Errorf(bridge.Denied, "the socket folder %s is not a folder that only you can write to: remove it, set XDG_RUNTIME_DIR or choose a shorter --home", dir)
	}
	return nil
}
