package clidata

import (
	"context"
	"database/sql"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// openCodeDatabase is the file of opencode's sessions, in its folder.
const openCodeDatabase = "opencode.db"

// OpenCode reads the store of opencode.
var OpenCode = Store{
	Kind: bridge.OpenCode,
	children: func(ctx context.Context, from conversation) ([]session.Child, error) {
		return openCodeChildren(ctx, filepath.Join(from.folder, openCodeDatabase), from.sessionID)
	},
	records: func(ctx context.Context, from conversation, look func([]byte)) error {
		return openCodeParts(ctx, filepath.Join(from.folder, openCodeDatabase), from.sessionID, look)
	},
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
