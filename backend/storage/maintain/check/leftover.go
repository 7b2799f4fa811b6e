package check

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// inQuarantine reports whether path, relative to the home, must stay unchanged, whatever
// its name. That holds for quarantined files, files of pending or published sets of
// backups, and files sent by another PC.
func inQuarantine(path string) bool {
	for _, folder := range []string{"archive/orphaned/", "backups/", "message-backups/", "inbox/", "network/incoming/"} {
		if len(path) > len(folder) && path[:len(folder)] == folder {
			return true
		}
	}
	return false
}

// isAbandonable reports whether path is a temporary file that a fix may move.
func isAbandonable(path string) bool {
	return !inQuarantine(path) && (disk.IsTemp(path) || isLeftover(path))
}

// leftoverForms are the names that other programs of the same layout give a file while
// they write it. They are the file's name, then .tmp, .tmp-<anything>, .tmp.<anything>,
// or numbers (a process, an id) and .tmp.
var leftoverForms = []*regexp.Regexp{
	regexp.MustCompile(`^\.?(.+?)\.tmp(?:[-.].*)?$`),
	regexp.MustCompile(`^\.?(.+?)(?:[.-][0-9][0-9a-f-]*)+\.tmp$`),
}

// leftoverFolders hold separate files that such programs write.
var leftoverFolders = append([]string{
	"runs", "read-journal", "read-state", "message-waits", "sessions", "job-outcomes", "local-result-receipts",
	"storage-capabilities", "plugin-sessions", "antigravity-hooks",
}, jsonFolders...)

// isLeftover reports whether path has the name of an unfinished write of a file of the
// home. Bridge or an older program of the same layout must keep such a file there. Any
// program may use a bare .tmp name.
func isLeftover(path string) bool {
	folder, name := filepath.ToSlash(filepath.Dir(path)), filepath.Base(path)
	for _, form := range leftoverForms {
		if match := form.FindStringSubmatch(name); match != nil && isStoredAt(folder, match[1]) {
			return true
		}
	}
	return false
}

// isStoredAt reports whether a file with that name is data of the home.
func isStoredAt(folder, name string) bool {
	extension := filepath.Ext(name)
	if folder != "." {
		top, _, _ := strings.Cut(folder, "/")
		return slices.Contains(leftoverFolders, top) && slices.Contains([]string{".json", ".jsonl", ".log"}, extension)
	}
	isFile := slices.Contains([]string{".json", ".db", ".sqlite"}, extension) || name == "token" || name == "launch-secret" || name == "dashboard-key"
	return isFile && config.IsKnownName(name)
}
