package clidata

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// openCodeChildren reads all sessions below the session.
func openCodeChildren(ctx context.Context, path, sessionID string) ([]session.Child, error) {
	var children []session.Child
	err := readDatabase(path, func(db *sql.DB) error {
		for table, columns := range map[string]string{"session": "id parent_id title time_created time_updated", "message": "session_id time_created time_updated data"} {
			has, err := hasTable(ctx, db, table, columns)
			if err != nil {
				return err
			}
			if !has {
				return unknownForm(bridge.OpenCode, "opencode.db has no known table "+table)
			}
		}
		var err error
		children, err = openCodeSessions(ctx, db, sessionID)
		return err
	})
	return children, err
}

func openCodeSessions(ctx context.Context, db *sql.DB, sessionID string) ([]session.Child, error) {
	rows, err := db.QueryContext(ctx, `
		WITH RECURSIVE family(id) AS (
			SELECT id FROM session WHERE parent_id = ?1
			UNION
			SELECT s.id FROM session s JOIN family f ON s.parent_id = f.id
			LIMIT ?2)
		SELECT s.id, substr(s.title, 1, 4096), s.time_created, ifnull(m.time_updated, 0),
			CASE WHEN length(m.data) <= ?4 THEN m.data ELSE '' END
		FROM family f JOIN session s ON s.id = f.id
		LEFT JOIN message m ON m.rowid = (SELECT l.rowid FROM message l WHERE l.session_id = s.id ORDER BY l.time_created DESC, l.id DESC LIMIT 1)
		ORDER BY s.time_created DESC, s.id DESC LIMIT ?3`, sessionID, maxStoredFamily, maxStoredChildren, maxStoredBytes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var children []session.Child
	for rows.Next() {
		var id, title string
		var created, updated int64
		var last sql.NullString
		if err := rows.Scan(&id, &title, &created, &updated, &last); err != nil {
			return nil, err
		}
		if !isStoredID(id) || id == sessionID {
			continue
		}
		child := session.Child{ID: id, Title: childTitleOf(title), Stored: true, At: max(created, updated)}
		if at, done := openCodeEnd(last.String); done {
			child.Done, child.At = true, at
		}
		children = append(children, child)
	}
	slices.Reverse(children)
	return children, rows.Err()
}

// openCodeEnd reports whether the last message ends the turn: a complete answer
// without further tools, or a failed one.
func openCodeEnd(message string) (at int64, done bool) {
	var last struct {
		Role string `json:"role"`
		Time struct {
			Completed bridge.UnixMillis `json:"completed"`
		} `json:"time"`
		Finish string          `json:"finish"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(message), &last) != nil || last.Role != "assistant" || last.Time.Completed == 0 {
		return 0, false
	}
	return last.Time.Completed, last.Finish != "tool-calls" || last.Error != nil
}
