// Package config defines where Bridge stores its files and how it is configured:
// the layout of the home folder, config.json, the BRIDGE_* variables and the two
// secrets. It reads the settings on every call and caches nothing.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Home is the folder that holds all data of Bridge (contract: Home). Its path is
// absolute and canonical, so equal homes have equal sockets.
type Home struct {
	dir       string
	isDefault bool
	user      string // the user's home folder, if this home is directly below it
}

// OpenHome is [ResolveHome] for a program that works in the home. It fails with Denied
// if this user's files would land in another user's folder (RWM-10). It fails with
// Invalid if the folder holds only other programs' files (CheckContents).
func OpenHome(flag string, getenv func(string) string) (Home, error) {
	home, err := ResolveHome(flag, getenv)
	if err == nil {
		err = checkOwner(home)
	}
	if err == nil {
		err = CheckContents(home)
	}
	return home, err
}

// checkOwner fails if the home belongs to another user. For the default home it
// also checks the owner of the user's folder.
func checkOwner(h Home) error {
	if h.user != "" {
		if err := CheckOwner(h.user); err != nil {
			return err
		}
	}
	return CheckOwner(h.dir)
}

// ResolveHome picks the home: the --home flag, else BRIDGE_HOME, else ~/.bridge. It
// changes nothing on the disk. It fails with Invalid if there is no usable path.
func ResolveHome(flag string, getenv func(string) string) (Home, error) {
	userHome, userErr := userHomeDir(getenv)
	chosen := flag
	if chosen == "" {
		chosen = getenv("BRIDGE_HOME")
	}
	if chosen == "" && userErr != nil {
		return Home{}, bridge.Errorf(bridge.Invalid, "there is no user home folder: name one for Bridge with --home or BRIDGE_HOME")
	}
	byDefault := filepath.Join(userHome, ".bridge")
	if chosen == "" {
		chosen = byDefault
	}
	if rest, ok := strings.CutPrefix(chosen, "~/"); ok && userErr == nil {
		chosen = filepath.Join(userHome, rest) // for --home=~/x the shell does not expand ~
	}
	dir, err := disk.CanonicalTarget(chosen)
	if err != nil {
		return Home{}, bridge.Errorf(bridge.Invalid, "the home folder %s cannot be used: %w", chosen, err)
	}
	isDefault := false
	if userErr == nil {
		canonical, err := disk.CanonicalTarget(byDefault)
		isDefault = err == nil && canonical == dir
	}
	home := Home{dir: dir, isDefault: isDefault}
	if isDefault {
		home.user = userHome
	}
	return home, nil
}

// userHomeDir returns the user's home folder from the variable. A service without
// the variable gets it from the user database.
func userHomeDir(getenv func(string) string) (string, error) {
	if dir := getenv(userHomeVariable); filepath.IsAbs(dir) {
		return dir, nil
	}
	current, err := user.Current()
	if err != nil {
		return "", err
	}
	return current.HomeDir, nil
}

// Dir returns the path of the home folder.
func (h Home) Dir() string { return h.dir }

// IsDefault reports whether this is ~/.bridge, for which `bridge install` writes no
// --home.
func (h Home) IsDefault() bool { return h.isDefault }

// The files and folders of the home, with their names in the contract.

// ConfigFile returns the path of config.json; read it with Config or Settings.
func (h Home) ConfigFile() string { return h.at("config.json") }

// TokenFile returns the path of the secret shared by this user's Bridge processes (MSG-02).
func (h Home) TokenFile() string { return h.at("token") }

// EntryPage is the file that opens the dashboard in the owner's browser. It exists
// for seconds, on systems that do not report the user of a connection.
const EntryPage = "open.html"

// LaunchSecretFile returns the path of the dashboard's secret (AUT-01).
func (h Home) LaunchSecretFile() string { return h.at("launch-secret") }

// DB returns the path of the primary store.
func (h Home) DB() string { return h.at("bridge.db") }

// Archive returns the path of the message archive.
func (h Home) Archive() string { return h.at("archive.db") }

// History returns the path of the conversation history store.
func (h Home) History() string { return h.at("history.db") }

// Compat returns the path of the compatibility store (VER-04).
func (h Home) Compat() string { return h.at("compat.db") }

// BrokerLock returns the path of the file whose lock elects the broker (MSG-01).
func (h Home) BrokerLock() string { return h.at("broker.lock") }

// ReadJournal returns the folder of receipts that no broker has processed yet.
func (h Home) ReadJournal() string { return h.at("read-journal") }

// PendingJobWrites returns the folder of job writes that wait for a safe moment
// (VER-05).
func (h Home) PendingJobWrites() string { return h.at("pending-job-writes", "v1") }

// Backups returns the folder of full snapshots.
func (h Home) Backups() string { return h.at("backups") }

// MessageBackups returns the folder of scoped message snapshots (STO-10).
func (h Home) MessageBackups() string { return h.at("message-backups") }

// Worktrees returns the folder of the checkouts of worktree jobs.
func (h Home) Worktrees() string { return h.at("worktrees") }

// ArchiveDir returns the folder of archived jobs, run logs and quarantined files.
func (h Home) ArchiveDir() string { return h.at("archive") }

// Orphaned returns the quarantine folder of abandoned temporary files (STO-06).
func (h Home) Orphaned() string { return h.at("archive", "orphaned") }

// StorageCapabilities returns the folder in which existing programs declare the
// store versions that they can read.
func (h Home) StorageCapabilities() string { return h.at("storage-capabilities") }

// StorageUsers returns the folder of the live writers' leases (STO-09).
func (h Home) StorageUsers() string { return h.at(".storage-users") }

// MaintenanceLock returns the path of the file that exists during a fix or a restore (STO-09).
func (h Home) MaintenanceLock() string { return h.at(".maintenance-lock") }

// AutoWake returns the path of the sessions' auto-wake choices (MSG-03).
func (h Home) AutoWake() string { return h.at("auto-wake.json") }

// Logs returns the folder of the logs.
func (h Home) Logs() string { return h.at("logs") }

// Log returns the path of the broker's rotated log.
func (h Home) Log() string { return h.at("logs", "bridge.log") }

// Socket returns the local endpoint: the path of a Unix socket, or a pipe name on
// Windows. If the home's path is too long for a socket, the socket is in a short
// private folder. Ensure creates and checks that folder; CheckSocket only checks it.
func (h Home) Socket() string { return socketOf(h, "bridge") }

// Window holds the files that limit a home to one desktop app (DSK-02).
type Window struct {
	Lock   string // the file whose lock the app holds
	Socket string // the app's endpoint for a second start; placed like Home.Socket
}

// Window returns the desktop app's files of the home.
func (h Home) Window() Window {
	return Window{Lock: h.at("window.lock"), Socket: socketOf(h, "window")}
}

// isFile reports whether err came because a file is in the place of the home. On Windows a
// missing home gives the same error.
func (h Home) isFile(err error) bool {
	if !errors.Is(err, syscall.ENOTDIR) || runtime.GOOS != "windows" {
		return errors.Is(err, syscall.ENOTDIR)
	}
	info, err := os.Stat(h.dir)
	return err == nil && !info.IsDir()
}

// errIsFile returns the error for a home whose path is a file.
func errIsFile(h Home) error {
	return bridge.Errorf(bridge.Invalid, "the home %s is a file: remove it or choose another folder with --home or BRIDGE_HOME", h.dir)
}

// CommandLine returns the shell command that runs program with these arguments on
// this home, quoted for this system.
func (h Home) CommandLine(program string, args ...string) string {
	line := quoteWord(program)
	for _, arg := range args {
		line += " " + quoteWord(arg)
	}
	if !h.isDefault {
		line += " --home " + quoteWord(h.dir)
	}
	return line
}

func quoteWord(arg string) string {
	if runtime.GOOS != "windows" {
		return bridge.QuotePOSIX(arg)
	}
	if strings.ContainsFunc(arg, func(r rune) bool { return !bridge.PlainRune(r) && r != '\\' }) {
		return `"` + arg + `"` // a quote is in no path there
	}
	return arg
}

// DemoMark is the file that marks the home of `bridge demo`.
const DemoMark = "demo"

// IsDemo reports whether the home belongs to a demo and is removed with it.
func IsDemo(h Home) bool {
	_, err := os.Lstat(h.at(DemoMark))
	return err == nil
}

func (h Home) at(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// Key returns a short name of this home for places that all homes share: 16
// hexadecimal digits.
func (h Home) Key() string {
	sum := sha256.Sum256([]byte(foldPath(h.dir)))
	return hex.EncodeToString(sum[:8])
}
