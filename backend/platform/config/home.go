// Package config knows where Bridge keeps things and what it is set to: the
// layout of the home folder, config.json, the BRIDGE_* variables and the two
// secrets. It reads settings anew on every call and caches nothing.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Home is the folder that holds everything Bridge stores (contract: Home). Its
// path is absolute and canonical, so equal homes have equal sockets.
type Home struct {
	dir       string
	isDefault bool
	user      string // the user's home folder, where this home is the one below it
}

// OpenHome is ResolveHome for a program that works in the home: Denied where that would
// leave files of this user in a folder of another user's (RWM-10), Invalid where the folder
// holds files of other programs alone (CheckContents).
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

// checkOwner refuses a home that is not this user's, and the usual one in a user's folder
// that is not.
func checkOwner(h Home) error {
	if h.user != "" {
		if err := CheckOwner(h.user); err != nil {
			return err
		}
	}
	return CheckOwner(h.dir)
}

// ResolveHome picks the home: the --home flag, else BRIDGE_HOME, else ~/.bridge.
// It touches nothing; Ensure makes the folder.
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
		chosen = filepath.Join(userHome, rest) // --home=~/x reaches us as it was typed
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

// userHomeDir returns the user's home. The variable is asked for through
// getenv; a service without it is looked up by its user.
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

// Dir is the home folder itself.
func (h Home) Dir() string { return h.dir }

// IsDefault reports whether this is ~/.bridge, which needs no --home in what
// `bridge install` writes.
func (h Home) IsDefault() bool { return h.isDefault }

// The files and folders of the home, as the contract names them.

// ConfigFile holds the settings; read them with Config or Settings.
func (h Home) ConfigFile() string { return h.at("config.json") }

// TokenFile holds the secret between this user's bridge processes (MSG-02).
func (h Home) TokenFile() string { return h.at("token") }

// EntryPage is the file that leads the owner's browser to the dashboard, for some
// seconds, where the system does not tell whose a connection is.
const EntryPage = "open.html"

// LaunchSecretFile holds the dashboard's secret (AUT-01).
func (h Home) LaunchSecretFile() string { return h.at("launch-secret") }

// DB is the primary store.
func (h Home) DB() string { return h.at("bridge.db") }

// Archive is the message archive.
func (h Home) Archive() string { return h.at("archive.db") }

// History is the conversation history store.
func (h Home) History() string { return h.at("history.db") }

// Compat is the compatibility store (VER-04).
func (h Home) Compat() string { return h.at("compat.db") }

// BrokerLock is the file whose lock elects the broker (MSG-01).
func (h Home) BrokerLock() string { return h.at("broker.lock") }

// ReadJournal is the folder of receipts that no broker has taken in yet.
func (h Home) ReadJournal() string { return h.at("read-journal") }

// PendingJobWrites is the folder of job writes that wait for a safe moment
// (VER-05).
func (h Home) PendingJobWrites() string { return h.at("pending-job-writes", "v1") }

// Backups is the folder of full snapshots.
func (h Home) Backups() string { return h.at("backups") }

// MessageBackups is the folder of scoped message snapshots (STO-10).
func (h Home) MessageBackups() string { return h.at("message-backups") }

// Worktrees is the folder of the checkouts of worktree jobs.
func (h Home) Worktrees() string { return h.at("worktrees") }

// ArchiveDir is the folder of archived jobs, run logs and quarantined files.
func (h Home) ArchiveDir() string { return h.at("archive") }

// Orphaned is the quarantine of abandoned temporary files (STO-06).
func (h Home) Orphaned() string { return h.at("archive", "orphaned") }

// StorageCapabilities is where programs of the field say which versions of the
// stores they can read.
func (h Home) StorageCapabilities() string { return h.at("storage-capabilities") }

// StorageUsers is the folder of the live writers' leases (STO-09).
func (h Home) StorageUsers() string { return h.at(".storage-users") }

// MaintenanceLock exists while a fix or a restore runs (STO-09).
func (h Home) MaintenanceLock() string { return h.at(".maintenance-lock") }

// AutoWake holds which sessions chose to be woken by any mail (MSG-03).
func (h Home) AutoWake() string { return h.at("auto-wake.json") }

// Logs is the folder of the logs.
func (h Home) Logs() string { return h.at("logs") }

// Log is the rotated log of the broker.
func (h Home) Log() string { return h.at("logs", "bridge.log") }

// Socket is the local endpoint: a Unix socket path, or a pipe name on Windows.
// A home whose path is too long for a socket has it in a short private folder
// instead. Ensure makes and checks that folder; CheckSocket only checks it.
func (h Home) Socket() string { return socketOf(h, "bridge") }

// Window is what makes a desktop app the only one of its home (DSK-02).
type Window struct {
	Lock   string // the file whose lock it holds
	Socket string // where it listens for its own second start; as for Home.Socket
}

// Window names the desktop app's files of the home.
func (h Home) Window() Window {
	return Window{Lock: h.at("window.lock"), Socket: socketOf(h, "window")}
}

// errIsFile is the sentence for a home that cannot be a folder.
func errIsFile(h Home) error {
	return bridge.Errorf(bridge.Invalid, "the home %s is a file: remove it or choose another folder with --home or BRIDGE_HOME", h.dir)
}

// CommandLine is what a person types into this system's shell to run program with
// these words on this home.
func (h Home) CommandLine(program string, words ...string) string {
	line := quoteWord(program)
	for _, word := range words {
		line += " " + quoteWord(word)
	}
	if !h.isDefault {
		line += " --home " + quoteWord(h.dir)
	}
	return line
}

func quoteWord(word string) string {
	if runtime.GOOS != "windows" {
		return bridge.QuotePOSIX(word)
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !bridge.PlainRune(r) && r != '\\' }) {
		return `"` + word + `"` // which is in no path there
	}
	return word
}

// DemoMark is the file by which a home is that of `bridge demo`.
const DemoMark = "demo"

// IsDemo reports whether that is the home of a demo, which goes away with the demo.
func IsDemo(h Home) bool {
	_, err := os.Lstat(h.at(DemoMark))
	return err == nil
}

func (h Home) at(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// Key is a short name of this home for places that all homes share: 16
// hexadecimal digits.
func (h Home) Key() string {
	sum := sha256.Sum256([]byte(foldPath(h.dir)))
	return hex.EncodeToString(sum[:8])
}
