package store

import (
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/sqlitex"
	"bridge/backend/store/schema"
	"bridge/backend/store/upgrade"
)

// TestVER_04_ASupplementThatACrashCutOff is what a broker leaves that dies right
// after it made compat.db, before the tables in it: the next one must start, with
// the older programs and without them.
func TestVER_04_ASupplementThatACrashCutOffKeepsNoBrokerFromStarting(t *testing.T) {
	made := map[string]func(t *testing.T, compat string){
		"an empty file": func(t *testing.T, compat string) { mustCreate(t, compat) },
		"a file without tables": func(t *testing.T, compat string) {
			inStore(t, compat, "PRAGMA journal_mode = WAL; PRAGMA user_version = 1")
		},
	}
	for name, prepare := range made {
		t.Run(name, func(t *testing.T) {
			for _, hosted := range []bool{false, true} {
				path := filepath.Join(t.TempDir(), "bridge.db")
				buildField(t, path, 3)
				prepare(t, upgrade.CompatPath(path))
				if hosted {
					db := openHosted(t, path, 3)
					appendAll(t, db, note("w1", "alice", "acknowledged", 9000, "bob"))
					mustClose(t, db)
				}
				db, err := Open(t.Context(), path, testOptions())
				if err != nil {
					t.Fatalf("hosted %v: %v", hosted, err)
				}
				if db.Version() != schema.Version {
					t.Errorf("Version = %d", db.Version())
				}
				if hosted {
					mustFind(t, db.Reader, "w1")
				}
				mustClose(t, db)
				if _, err := os.Lstat(upgrade.CompatPath(path)); !os.IsNotExist(err) {
					t.Errorf("the supplement is still there: %v", err)
				}
			}
		})
	}
}

func mustCreate(t *testing.T, path string) {
	t.Helper()
	if err := sqlitex.CreateEmpty(path); err != nil {
		t.Fatal(err)
	}
}
