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

// maxSocketPath is the longest path that every Unix accepts for a socket: 104
// bytes with the closing zero on macOS and the BSDs, 108 on Linux.
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

// runtimeDir holds the sockets of homes with long paths where no folder is the user's own
// (privateDir), and links to those where there is one. It is not TMPDIR, which differs
// between the processes of one user.
func runtimeDir(uid int) string { return "/tmp/bridge-" + strconv.Itoa(uid) }

// privateDir is where the sockets of homes with long paths are: in XDG_RUNTIME_DIR, where
// no other user can be first (SEC-13). It is "" where that is not set, or not this user's
// alone.
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

// isOurSocket reports whether a socket itself is there, in a folder of this user's: a broker
// listens, or listened, that has no folder of the user's own, or is older than privateDir.
func isOurSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0 && checkSocketDir(filepath.Dir(path)) == nil
}

// linkSockets has the sockets of a private folder found by those who know runtimeDir alone:
// programs without XDG_RUNTIME_DIR, and older ones. Where that folder is another user's they
// say so, and the others need it not.
func linkSockets(h Home) {
	folder := runtimeDir(os.Geteuid())
	if os.Mkdir(folder, disk.PrivateDir) != nil && checkSocketDir(folder) != nil {
		return
	}
	for _, name := range []string{"bridge", "window"} {
		socket, link := socketOf(h, name), filepath.Join(folder, h.Key()+"-"+name+".sock")
		if there, err := os.Readlink(link); socket == link || err == nil && there == socket {
			continue
		}
		fresh := disk.TempName(link)
		if os.Symlink(socket, fresh) == nil {
			_ = os.Rename(fresh, link) // who cannot find it says so
		}
	}
}

// Ensure makes the home ready for writing: it makes the folder when missing and
// makes it private, unless files that are not Bridge's lie in it. When the home is not
// ours, a file, not writable or full of other files it says so in one sentence and has
// changed nothing.
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

// CheckOwner refuses a folder in which a process of this user would leave files that are
// not of the folder's owner (RWM-10): Denied where the folder, or the nearest one above it
// that exists, belongs to somebody else. A process that is not root's may use a folder of
// root's that it may write, as a container gives to a user without a name.
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

// nearestFolder returns the folder at path, or the nearest one above it that exists.
func nearestFolder(path string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || path == filepath.Dir(path) {
			return path, info, err
		}
		path = filepath.Dir(path)
	}
}

// adopt checks an existing home and closes it to others.
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
	if stranger := strangerIn(h); stranger != "" { // other users may have to read it
		return checkShared(h, info, stranger)
	}
	if err := os.Chmod(h.dir, disk.PrivateDir); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made private: %w", h.dir, err)
	}
	return nil
}

// checkShared refuses a home that others can write to and that holds files which are not
// Bridge's: its mode is not Bridge's to change then.
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

// CheckSocket reports whether the folder of Socket belongs to this user alone,
// so that nobody else can have put an endpoint there. It changes nothing. A
// missing folder is NotFound: no broker runs.
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
