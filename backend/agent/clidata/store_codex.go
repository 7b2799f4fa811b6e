package clidata

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Codex reads the store of codex.
var Codex = Store{
	Kind: bridge.Codex,
	children: func(ctx context.Context, from conversation) ([]session.Child, error) {
		return codexChildren(ctx, from.folder, from.sessionID)
	},
	records: func(ctx context.Context, from conversation, look func([]byte)) error {
		return eachRecord(from.folder, codexRollout(ctx, from.folder, from.sessionID), look)
	},
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
