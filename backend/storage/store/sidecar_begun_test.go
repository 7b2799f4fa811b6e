package store

import (
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/upgrade"
)

// TestVER_04_ASidecarThatACrashCutOff is what a broker leaves that dies right
// after it made compat.db, before the tables in it: the next one must start, with
// the older programs and without them.
func TestVER_04_ASidecarThatACrashCutOffKeepsNoBrokerFromStarting(t *testing.T) {
	made := map[string]func(t *testing.T, sidecar string){
		"an empty file": func(t *testing.T, sidecar string) { mustCreate(t, sidecar) },
		"a file without tables": func(t *testing.T, sidecar string) {
			inStore(t, sidecar, "PRAGMA journal_mode = WAL; PRAGMA user_version = 1")
		},
	}
	for name, prepare := range made {
		t.Run(name, func(t *testing.T) {
			for _, deferred := range []bool{false, true} {
				path := filepath.Join(t.TempDir(), "bridge.db")
				buildField(t, path, 3)
				prepare(t, upgrade.SidecarPath(path))
				if deferred {
					db := openDeferred(t, path, 3)
					appendAll(t, db, note("w1", "alice", "acknowledged", 9000, "bob"))
					mustClose(t, db)
				}
				db, err := Open(t.Context(), path, testOptions())
				if err != nil {
					t.Fatalf("deferred %v: %v", deferred, err)
				}
				if db.Version() != schema.Version {
					t.Errorf("Version = %d", db.Version())
				}
				if deferred {
					mustFind(t, db.Reader, "w1")
				}
				mustClose(t, db)
				if _, err := os.Lstat(upgrade.SidecarPath(path)); !os.IsNotExist(err) {
					t.Errorf("the sidecar is still there: %v", err)
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
