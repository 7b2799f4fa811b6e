//go:build !windows

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"bridge/backend/bridge"
	"bridge/backend/disk"
)

const userHomeVariable = "HOME"

// maxSocketPath is the longest path that every Unix accepts for a socket: 104
// bytes with the closing zero on macOS and the BSDs, 108 on Linux.
const maxSocketPath = 103

func foldPath(path string) string { return path }

func (h Home) socket(name string) string {
	if path := h.at(name + ".sock"); len(path) <= maxSocketPath {
		return path
	}
	return filepath.Join(runtimeDir(os.Geteuid()), h.Key()+"-"+name+".sock")
}

// runtimeDir holds the sockets of homes with long paths. It is not TMPDIR,
// which differs between the processes of one user.
func runtimeDir(uid int) string { return "/tmp/bridge-" + strconv.Itoa(uid) }

// Ensure makes the home ready for writing: it makes the folder when missing and
// makes it private. When the home is not ours, a file or not writable it says
// so in one sentence and has changed nothing.
func (h Home) Ensure() error {
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
	return ensureRuntimeDir(h)
}

// adopt checks an existing home and closes it to others.
func adopt(h Home, info fs.FileInfo) error {
	if !info.IsDir() {
		return errIsFile(h)
	}
	if owner := ownerOf(info); owner != os.Geteuid() {
		return bridge.Errorf(bridge.Denied, "the home folder %s belongs to %s, not to you (%s): run as that user or choose another folder with --home or BRIDGE_HOME",
			h.dir, userName(owner), userName(os.Geteuid()))
	}
	if err := unix.Access(h.dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s is not writable: %w", h.dir, err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(h.dir, disk.PrivateDir); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made private: %w", h.dir, err)
	}
	return nil
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
func (h Home) CheckSocket() error {
	dir := filepath.Dir(h.Socket())
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return bridge.Errorf(bridge.NotFound, "the socket folder %s does not exist", dir)
	}
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the socket folder %s cannot be looked at: %w", dir, err)
	}
	if !info.IsDir() || ownerOf(info) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return bridge.Errorf(bridge.Denied, "the socket folder %s is not a folder that only you can write to: remove it or choose a shorter --home", dir)
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

func userName(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", found.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}
