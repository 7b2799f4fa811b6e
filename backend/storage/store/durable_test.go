package store

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/platform/sqlitex"
)

// pragma reads a setting back from the very connection that writes.
func (d *DB) pragma(t *testing.T, name string) (value string) {
	t.Helper()
	err := d.writer.Do(t.Context(), func(tx *sqlitex.Tx) error {
		rows, err := tx.Query(t.Context(), "PRAGMA "+name)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&value) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestMSG_04_TheWriterSyncsEveryCommit: what SQLite itself says of the connection
// that Open made, for a store of every kind.
func TestMSG_04_TheWriterSyncsEveryCommit(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, path string) Options{
		"a new store": func(*testing.T, string) Options { return Options{} },
		"an upgraded store": func(t *testing.T, path string) Options {
			buildField(t, path, 5)
			return Options{}
		},
		"a store that keeps its schema": func(t *testing.T, path string) Options {
			buildField(t, path, 2)
			return Options{OldestReader: 4}
		},
		"a store that lost a table": func(t *testing.T, path string) Options {
			if err := openAt(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			inStore(t, path, "DROP TABLE decisions")
			return Options{}
		},
	} {
		t.Run("MSG-04 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			opts := prepare(t, path)
			opts.Now, opts.Log = time.Now, slog.New(slog.DiscardHandler)
			db, err := Open(t.Context(), path, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			settings := []string{"synchronous"}
			if db.deferred() {
				settings = append(settings, "sidecar.synchronous")
			}
			for _, setting := range settings {
				if got := db.pragma(t, setting); got != "2" {
					t.Errorf("%s is %s, not 2 (FULL): commits would be answered before they are synced", setting, got)
				}
			}
			for setting, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "wal_autocheckpoint": "0"} {
				if got := db.pragma(t, setting); got != want {
					t.Errorf("%s is %s, not %s", setting, got, want)
				}
			}
		})
	}
}
