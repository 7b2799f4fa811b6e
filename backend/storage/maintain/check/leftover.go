package check

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// inQuarantine reports whether path, relative to the home, is one that Fix put
// away, part of a set of backups, pending or published, or a file that another PC has
// sent: those stay as they are, whatever they are called.
func inQuarantine(path string) bool {
	for _, folder := range []string{"archive/orphaned/", "backups/", "message-backups/", "inbox/", "network/incoming/"} {
		if len(path) > len(folder) && path[:len(folder)] == folder {
			return true
		}
	}
	return false
}

// isAbandonable reports whether path is a temporary file that a fix may take.
func isAbandonable(path string) bool {
	return !inQuarantine(path) && (disk.IsTemp(path) || isLeftover(path))
}

// leftoverForms are the names that other programs of the same layout give a file
// while they write it: the file's name, then .tmp, .tmp-<anything>,
// .tmp.<anything>, or numbers (a process, an id) and .tmp.
var leftoverForms = []*regexp.Regexp{
	regexp.MustCompile(`^\.?(.+?)\.tmp(?:[-.].*)?$`),
	regexp.MustCompile(`^\.?(.+?)(?:[.-][0-9][0-9a-f-]*)+\.tmp$`),
}

// leftoverFolders hold, each file for itself, what such programs write.
var leftoverFolders = append([]string{
	"runs", "read-journal", "read-state", "message-waits", "sessions", "job-outcomes", "local-result-receipts",
	"storage-capabilities", "plugin-sessions", "antigravity-hooks",
}, jsonFolders...)

// isLeftover reports whether path is named like the unfinished write of a file
// that Bridge or an older program of the same layout keeps at that place. What
// is merely called .tmp may be anybody's.
func isLeftover(path string) bool {
	folder, name := filepath.ToSlash(filepath.Dir(path)), filepath.Base(path)
	for _, form := range leftoverForms {
		if match := form.FindStringSubmatch(name); match != nil && isStoredAt(folder, match[1]) {
			return true
		}
	}
	return false
}

// isStoredAt reports whether a file of that name is data of the home.
func isStoredAt(folder, name string) bool {
	extension := filepath.Ext(name)
	if folder != "." {
		top, _, _ := strings.Cut(folder, "/")
		return slices.Contains(leftoverFolders, top) && slices.Contains([]string{".json", ".jsonl", ".log"}, extension)
	}
	isFile := slices.Contains([]string{".json", ".db", ".sqlite"}, extension) || name == "token" || name == "launch-secret" || name == "dashboard-key"
	return isFile && config.IsKnownName(name)
}
