package config

import (
	"os"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Folders returns the folders that Bridge keeps in a home, as relative paths with slashes.
func Folders() []string { return slices.Clone(knownFolders) }

var knownFolders = []string{
	"install", "network", "approvals", "jobs", "runs", "read-journal", "pending-job-writes", "backups", "message-backups", "archive",
	".migration-snapshots", ".storage-users", "logs", "storage-capabilities",
	"pending-job-writes/v1", "archive/orphaned", "archive/pending-job-writes", "backups/archive", "message-backups/archive",
}

// known lists the top-level names of a home other than the folders: Bridge's own
// files, and files of other programs with the same layout.
var known = []string{
	"bridge.db", "archive.db", "history.db", "questions.db", "compat.db",
	"config.json", "needs.json", DraftsStore, CostsStore, PausesStore, ProofsStore, "rules.json", "token", "launch-secret", "jobs.json", "remote-jobs.json", "broker.lock", "bridge.sock",
	"window.lock", "window.sock", "prompts-open", DemoMark, "browsers.json", EntryPage,
	".maintenance-lock", "worktrees", "scratch", "inbox", "transfers", "locks",
	"dashboard.json", "dashboard-key", "read-state", "message-waits", "sessions", "auto-wake.json", "job-outcomes",
	"local-result-receipts", "plugin-versions", "plugin-sessions", "permission-repairs",
	"antigravity-hooks", "owner-questions.db", "store-compatibility.db", "job-archive.db", "resource-slots.sqlite", "root-limits.sqlite",
}

// marks lists the known names that no other program uses. A folder with one of them
// is a home, whatever else it holds.
var marks = []string{
	"bridge.db", "launch-secret", "broker.lock", "bridge.sock", ".storage-users", ".maintenance-lock", "storage-capabilities",
	"read-journal", "pending-job-writes", "message-backups", "compat.db", "dashboard-key", "auto-wake.json", "read-state", "message-waits",
	"local-result-receipts", "owner-questions.db", "store-compatibility.db",
}

// besideKnown lists the suffixes of files that belong to a known file.
var besideKnown = []string{".lock", "-wal", "-shm", "-journal"}

// IsKnownName reports whether Bridge uses the name directly in a home: for a file,
// a folder, or a file that belongs to one (side files, copies, locks).
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

// ofSystem lists the names that operating systems create in folders.
var ofSystem = []string{"lost+found", ".DS_Store", "desktop.ini", "Thumbs.db"}

// CheckContents fails with Invalid if the folder holds files and none that marks a
// home of Bridge. It accepts a missing, empty or unreadable folder, because Bridge
// cannot mistake anything there for its own. It changes nothing.
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

// HomeExists reports whether the home's folder holds a file of Bridge. It changes nothing.
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

// strangerIn returns the name of one foreign file in the folder, or "".
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

// isUnfinished reports whether the name belongs to an unfinished write of a known
// file by a program of the same layout.
func isUnfinished(name string) bool {
	base, _, isTemp := strings.Cut(strings.TrimPrefix(name, "."), ".tmp")
	for isTemp && base != "" {
		if IsKnownName(base) {
			return true
		}
		base = base[:max(0, strings.LastIndexByte(base, '.'))] // the name may have numbers in between
	}
	return false
}

// eachIn calls visit with the names in the folder, unsorted, until visit returns
// false. It visits none if the folder cannot be read.
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
		if err != nil { // also at the end
			return
		}
	}
}
