package clidata

import (
	"encoding/json"
	"os"
	"path"
	"strconv"

	"bridge/backend/core/bridge"
)

// claudeEntry is sessions/<pid>.json in Claude Code's store: its own record of the
// session of one of its processes.
type claudeEntry struct {
	PID             int               `json:"pid"`
	SessionID       string            `json:"sessionId"`
	Status          string            `json:"status"`
	StatusUpdatedAt bridge.UnixMillis `json:"statusUpdatedAt"`
}

// readClaudeEntry reads Claude Code's record of that session, which must belong to
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

// ClaudeIdleSince returns the time since which Claude Code reports a session of
// process pid as idle, in Unix epoch milliseconds, or 0.
func ClaudeIdleSince(folder string, pid int, sessionID string) int64 {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	if !known || entry.Status != "idle" {
		return 0
	}
	return entry.StatusUpdatedAt
}

// ClaudeBusySince returns the time since which Claude Code reports a session of
// process pid as in a turn, including one that waits for its user. It is in Unix
// epoch milliseconds, or 0.
func ClaudeBusySince(folder string, pid int, sessionID string) int64 {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	if !known || entry.Status != "busy" && entry.Status != "waiting" {
		return 0
	}
	return entry.StatusUpdatedAt
}

// ClaudeWaits reports whether Claude Code's process pid shows a dialog that waits
// for its user; known is false without a report.
func ClaudeWaits(folder string, pid int, sessionID string) (waits, known bool) {
	entry, known := readClaudeEntry(folder, pid, sessionID)
	return known && entry.Status == "waiting", known && entry.Status != ""
}
