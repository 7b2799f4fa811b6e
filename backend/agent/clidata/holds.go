package clidata

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// maxHeldBytes bounds the searched end of a session, which holds the last input of
// an ended process.
const maxHeldBytes = 16 << 20

// Holds returns which of the messages the CLI's own store in folder holds
// completely in the session: a resumed session shows them. It only reads, like
// Children. An unreadable store holds none.
func Holds(ctx context.Context, kind bridge.AgentKind, folder, sessionID, cwd string, messages []mail.Delivery) map[string]bool {
	held := map[string]bool{}
	if folder == "" || !isStoredID(sessionID) || len(messages) == 0 {
		return held
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	look := func(record []byte) { holdsIn(record, messages, held) }
	switch kind {
	case bridge.Claude:
		_ = eachRecord(folder, claudeTranscript(folder, sessionID, cwd), look)
	case bridge.Codex:
		_ = eachRecord(folder, codexRollout(ctx, folder, sessionID), look)
	case bridge.OpenCode:
		_ = openCodeParts(ctx, filepath.Join(folder, "opencode.db"), sessionID, look)
	default: // no known store
	}
	return held
}

// holdsIn records which messages are in one record of a store. A host may store a
// tool's JSON answer as a text.
func holdsIn(record []byte, messages []mail.Delivery, held map[string]bool) {
	var value any
	for _, m := range messages {
		if held[m.ID] || !mail.MayHold(record, m.Message) {
			continue
		}
		if value == nil && json.Unmarshal(record, &value) != nil {
			return
		}
		held[m.ID] = holdsText(value, m.Message, maxHeldDepth)
	}
}

// maxHeldDepth bounds the depth of the search in a record.
const maxHeldDepth = 20

func holdsText(value any, m bridge.Message, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := value.(type) {
	case string:
		if mail.HeldIn(v, m) {
			return true
		}
		return holdsJSON(v, m, depth)
	case []any:
		for _, item := range v {
			if holdsText(item, m, depth-1) {
				return true
			}
		}
	case map[string]any:
		if id, _ := v["id"].(string); id == m.ID && v["body"] == m.Body {
			return true // the form of the tool `inbox`
		}
		for _, item := range v {
			if holdsText(item, m, depth-1) {
				return true
			}
		}
	}
	return false
}

// holdsJSON searches a text that is itself JSON.
func holdsJSON(text string, m bridge.Message, depth int) bool {
	var inner any
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &inner) != nil {
		return false
	}
	return holdsText(inner, m, depth-1)
}

// claudeTranscript returns the file of a Claude Code session below folder, or "".
func claudeTranscript(folder, sessionID, cwd string) string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	projects, err := claudeProjects(root, sessionID, cwd)
	if err != nil {
		return ""
	}
	for _, project := range projects {
		if name := path.Join("projects", project, sessionID+".jsonl"); exists(root, name) {
			return name
		}
	}
	return ""
}

// codexRollout returns the file of a codex thread below folder, or "".
func codexRollout(ctx context.Context, folder, sessionID string) string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	index, err := codexIndex(root)
	if err != nil {
		return ""
	}
	var rollout string
	err = readDatabase(filepath.Join(folder, index), func(db *sql.DB) error {
		if err := checkCodexIndex(ctx, db, index); err != nil {
			return err
		}
		return db.QueryRowContext(ctx, "SELECT substr(rollout_path, 1, 4096) FROM threads WHERE id = ?1", sessionID).Scan(&rollout)
	})
	if err != nil {
		return ""
	}
	name, err := filepath.Rel(folder, rollout)
	if err != nil {
		return ""
	}
	return name
}

// eachRecord calls look with every line at the end of a file below folder.
func eachRecord(folder, name string, look func([]byte)) error {
	root, err := os.OpenRoot(folder)
	if err != nil || name == "" {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	file, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	data, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-maxHeldBytes), maxHeldBytes))
	if err != nil {
		return err
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		look(line)
	}
	return nil
}

// openCodeParts calls look with the newest parts of an opencode session.
func openCodeParts(ctx context.Context, path, sessionID string, look func([]byte)) error {
	return readDatabase(path, func(db *sql.DB) error {
		if has, err := hasTable(ctx, db, "part", "session_id time_created data"); err != nil || !has {
			return err
		}
		rows, err := db.QueryContext(ctx, "SELECT data FROM part WHERE session_id = ?1 ORDER BY time_created DESC LIMIT 2000", sessionID)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var data []byte
			if err := rows.Scan(&data); err != nil {
				return err
			}
			look(data)
		}
		return rows.Err()
	})
}
