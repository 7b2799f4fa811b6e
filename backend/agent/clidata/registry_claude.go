package clidata

import (
	"encoding/json"
	"os"
	"path"
	"strconv"
)

// ClaudeIdleSince returns since when claude itself calls a session of its process
// pid idle, Unix epoch milliseconds, 0 when it does not: sessions/<pid>.json in
// the folder of its store. It only reads.
func ClaudeIdleSince(folder string, pid int, sessionID string) int64 {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0
	}
	defer root.Close() //nolint:errcheck // it was only read
	data, _, err := readStored(root, path.Join("sessions", strconv.Itoa(pid)+".json"), false)
	if err != nil {
		return 0
	}
	var entry struct {
		PID             int    `json:"pid"`
		SessionID       string `json:"sessionId"`
		Status          string `json:"status"`
		StatusUpdatedAt int64  `json:"statusUpdatedAt"`
	}
	if json.Unmarshal(data, &entry) != nil || entry.PID != pid || entry.SessionID != sessionID || entry.Status != "idle" {
		return 0
	}
	return entry.StatusUpdatedAt
}
