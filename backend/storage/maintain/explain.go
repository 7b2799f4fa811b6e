package maintain

import (
	"context"
	"fmt"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
)

// Task names a maintenance task that the owner can request.
type Task string

// The tasks. Those that change the home ask for consent first (STO-09).
const (
	TaskCheck   Task = "check"
	TaskBackup  Task = "backup"
	TaskTest    Task = "drill"
	TaskArchive Task = "archive"
	TaskFix     Task = "fix"
	TaskRestore Task = "restore"
	TaskMerge   Task = "merge"
	TaskReplace Task = "replace" // by `bridge serve --new-store`
)

// Explain describes in sentences what a task is going to do in this home, for a person
// who must consent. set is the set of a restore or merge, the newest if it is "".
func (m Maintenance) Explain(task Task, set string) string {
	if set == "" || set == "latest" {
		set = "the newest one"
	}
	switch task {
	case TaskCheck:
		return fmt.Sprintf("This reads everything in %s and changes nothing.", m.Home.Dir())
	case TaskBackup:
		return fmt.Sprintf("This copies the databases and the JSON stores to a new full snapshot in %s and reads every byte of it again before it counts. Sessions go on working. %s",
			m.Home.Backups(), m.explainRetention())
	case TaskTest:
		return "This restores the newest full snapshot into a scratch home beside the backups, compares every table with what the snapshot's manifest counts, records the outcome and removes the scratch home. Your data is only read."
	case TaskArchive:
		if m.ArchiveAge == 0 {
			return "BRIDGE_ARCHIVE_AGE_MS is 0, so nothing is archived."
		}
		return fmt.Sprintf("This moves messages that were read, or expired, more than %s ago to %s. Search still finds them. Bridge archives old jobs and their logs automatically.",
			bridge.Counted(int(m.ArchiveAge/(24*time.Hour)), "day"), m.Home.Archive())
	case TaskFix:
		return fmt.Sprintf("This moves abandoned temporary files and the leases of dead processes to %s, byte for byte, and ends the processes that a job's runner left running when it died.", m.Home.Orphaned())
	case TaskRestore:
		return fmt.Sprintf("This puts the files of a full snapshot (%s) in the place of the present ones in %s. What is there now is kept in a recovery set first.", set, m.Home.Dir())
	case TaskMerge:
		explains := fmt.Sprintf("This brings back the messages of a backup of messages (%s) that are missing in %s. Nothing that is there is changed, and a copy of it is kept in a recovery set first.", set, m.Home.Dir())
		if how := check.MissingStore(context.Background(), m.Home, true); how != "" {
			explains += fmt.Sprintf(" The store %s, so an empty one is made for them: decisions do not come back.", how)
		}
		return explains
	case TaskReplace:
		return fmt.Sprintf("This begins with an empty store in %s: no message and no decision of the lost one is in it. What is left of that one is kept in a recovery set first, and snapshots stay as they are.", m.Home.Dir())
	}
	return ""
}

func (m Maintenance) explainRetention() string {
	if m.Retention == 0 {
		return "All snapshots stay in place."
	}
	if m.Retention == 1 {
		return "The newest snapshot stays in place; older ones move to the archive beside it, and none is deleted."
	}
	return fmt.Sprintf("The newest %s stay in place; older ones move to the archive beside them, and none is deleted.", bridge.Counted(m.Retention, "snapshot"))
}
