package clidata

import (
	"encoding/json"
	"os"
	"path"
	"strconv"

	"bridge/backend/core/bridge"
)

// claudeEntry is sessions/<pid>.json in the folder of claude's store: what claude
// itself says of the session of one of its processes.
type claudeEntry struct {
	PID             int               `json:"pid"`
	SessionID       string            `json:"sessionId"`
	Status          string            `json:"status"`
	StatusUpdatedAt bridge.UnixMillis `json:"statusUpdatedAt"`
}

// readClaudeEntry reads what claude says of that session, which has to be the one of
// the process. It only reads.
func readClaudeEntry(folder string, pid int, sessionID string) (entry claudeEntry, known bool) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return entry, false
	}
	defer root.Close() //nolint:errcheck // it was only read
	data, _, err := readStored(root, path.Join("sessions", strconv.Itoa(pid)+".json"), false)
	if err != nil {
		return entry, false
	}
	known = json.Unmarshal(data, &entry) == nil && entry.PID == pid && entry.SessionID == sessionID
	return entry, known
}

// ClaudeIdleSince returns since when claude itself calls a session of its process
// pid idle, Unix epoch milliseconds, 0 when it does not.
func ClaudeIdleSince(folder string, pid int, sessionID string) int64 {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	if !known || entry.Status != "idle" {
		return 0
	}
	return entry.StatusUpdatedAt
}

// ClaudeBusySince returns since when claude itself says that a session of its process pid
// is in a turn, also one that waits for its user, Unix epoch milliseconds, 0 when it does
// not.
func ClaudeBusySince(folder string, pid int, sessionID string) int64 {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	if !known || entry.Status != "busy" && entry.Status != "waiting" {
		return 0
	}
	return entry.StatusUpdatedAt
}

// ClaudeWaits reports whether claude says that a dialog of its process pid stands on
// the screen and waits for its user; known is false where it says nothing of itself.
func ClaudeWaits(folder string, pid int, sessionID string) (waits, known bool) {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	return known && entry.Status == "waiting", known && entry.Status != ""
}
