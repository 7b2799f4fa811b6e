package config

import (
	"os"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Folders lists the folders that Bridge keeps in a home, relative to it with slashes.
func Folders() []string { return slices.Clone(knownFolders) }

var knownFolders = []string{
	"install", "network", "approvals", "jobs", "runs", "read-journal", "pending-job-writes", "backups", "message-backups", "archive",
	".migration-snapshots", ".storage-users", "logs", "storage-capabilities",
	"pending-job-writes/v1", "archive/orphaned", "archive/pending-job-writes", "backups/archive", "message-backups/archive",
}

// known lists what may lie right in a home beside the folders: Bridge's own files and
// those of other programs that use the same layout.
var known = []string{
	"bridge.db", "archive.db", "history.db", "questions.db", "compat.db",
	"config.json", "needs.json", "rules.json", "token", "launch-secret", "jobs.json", "remote-jobs.json", "broker.lock", "bridge.sock",
	"window.lock", "window.sock", "prompts-open", DemoMark, "browsers.json", EntryPage,
	".maintenance-lock", "worktrees", "scratch", "inbox", "transfers", "locks",
	"dashboard.json", "dashboard-key", "read-state", "message-waits", "sessions", "auto-wake.json", "job-outcomes",
	"local-result-receipts", "plugin-versions", "plugin-sessions", "permission-repairs",
	"antigravity-hooks", "owner-questions.db", "store-compatibility.db", "job-archive.db", "resource-slots.sqlite", "root-limits.sqlite",
}

// marks lists those of them that no other program has: a folder with one of them is a
// home, whatever else lies in it.
var marks = []string{
	"bridge.db", "launch-secret", "broker.lock", "bridge.sock", ".storage-users", ".maintenance-lock", "storage-capabilities",
	"read-journal", "pending-job-writes", "message-backups", "compat.db", "dashboard-key", "auto-wake.json", "read-state", "message-waits",
	"local-result-receipts", "owner-questions.db", "store-compatibility.db",
}

// besideKnown lists the endings of files that belong to a known one.
var besideKnown = []string{".lock", "-wal", "-shm", "-journal"}

// IsKnownName reports whether Bridge keeps something of that name right in a home: a file
// or folder of its own, or what belongs to one (side files, copies, locks).
func IsKnownName(name string) bool {
	if slices.Contains(known, name) || slices.Contains(knownFolders, name) || disk.IsTemp(name) {
		return true
	}
	for _, ending := range besideKnown {
		if base, is := strings.CutSuffix(name, ending); is && IsKnownName(base) {
			return true
		}
	}
	base, _, isCopy := strings.Cut(name, ".backup-")
	isModels := strings.HasPrefix(name, "models-") && strings.HasSuffix(name, ".json")
	return isCopy && IsKnownName(base) || isModels
}

// ofSystem lists what systems put into folders by themselves.
var ofSystem = []string{"lost+found", ".DS_Store", "desktop.ini", "Thumbs.db"}

// CheckContents returns an error with Invalid where the folder of the home holds files and
// none by which it is a home of Bridge's. A folder that is missing, empty or not readable
// is accepted: Bridge has nothing in it to take for its own. CheckContents changes nothing.
func CheckContents(h Home) error {
	if hasMark(h) {
		return nil
	}
	if stranger := strangerIn(h); stranger != "" {
		return bridge.Errorf(bridge.Invalid, "the folder %s is no home of Bridge's: it holds other files, such as %s. Nothing was changed there. Choose an empty or new folder with --home or BRIDGE_HOME",
			h.dir, bridge.OneLine(stranger))
	}
	return nil
}

// HomeExists reports whether Bridge keeps something in the folder of the home. It changes nothing.
func HomeExists(h Home) bool {
	found := false
	eachIn(h, func(name string) bool {
		found = IsKnownName(name)
		return !found
	})
	return found
}

func hasMark(h Home) bool {
	return slices.ContainsFunc(marks, func(mark string) bool {
		_, err := os.Lstat(h.at(mark))
		return err == nil
	})
}

// strangerIn returns the name of something in the folder that is not Bridge's, "" for none.
func strangerIn(h Home) string {
	found := ""
	eachIn(h, func(name string) bool {
		if !IsKnownName(name) && !slices.Contains(ofSystem, name) && !isUnfinished(name) {
			found = name
		}
		return found == ""
	})
	return found
}

// isUnfinished reports whether the name is that of a write to a known file which a program
// of the same layout did not finish.
func isUnfinished(name string) bool {
	base, _, isTemp := strings.Cut(strings.TrimPrefix(name, "."), ".tmp")
	for isTemp && base != "" {
		if IsKnownName(base) {
			return true
		}
		base = base[:max(0, strings.LastIndexByte(base, '.'))] // numbers may stand between
	}
	return false
}

// eachIn calls visit with the names in the folder, in no order, until it returns false. It
// visits none where the folder cannot be read.
func eachIn(h Home, visit func(name string) bool) {
	folder, err := os.Open(h.dir)
	if err != nil {
		return
	}
	defer folder.Close()
	for {
		names, err := folder.Readdirnames(64)
		for _, name := range names {
			if !visit(name) {
				return
			}
		}
		if err != nil { // the end, too
			return
		}
	}
}
