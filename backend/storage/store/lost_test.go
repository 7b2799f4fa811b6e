package store

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/transfer"
	"bridge/backend/storage/store/upgrade"
)

// What is written to a file without a name is lost with the broker: nobody may
// be told that it is stored.
func TestMSG_04_NothingIsAcknowledgedForAStoreThatWasTakenAway(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(path+".other", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			if _, _, err := db.Append(t.Context(), note("before", "a", "x", 1, "b")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := take(path); err != nil {
				t.Skipf("this system lets nobody take an open file away: %v", err)
			}
			for _, id := range []string{"after", "after", "later"} { // a retry finds it in the file without a name
				if _, _, err := db.Append(t.Context(), note(id, "a", "x", 2, "b")); bridge.CodeOf(err) != bridge.Storage {
					t.Errorf("%s was acknowledged: %v", id, err)
				}
				if _, err := db.SentBefore(t.Context(), note(id, "a", "x", 2, "b")[0]); bridge.CodeOf(err) != bridge.Storage {
					t.Errorf("%s counts as sent: %v", id, err)
				}
			}
		})
	}
}

// The log of a lost database may hold what is nowhere else, and SQLite drops it
// beside an empty one.
func TestSTO_14_TheLogOfALostDatabaseIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	lost := func(t *testing.T, path string) {
		if err := os.WriteFile(path+"-wal", []byte("commits"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(t *testing.T, path string, err error) {
		t.Helper()
		if data, readErr := os.ReadFile(path + "-wal"); bridge.CodeOf(err) != bridge.Storage || readErr != nil || string(data) != "commits" {
			t.Errorf("%v; the log is %q, %v", err, data, readErr)
		}
	}
	lost(t, path)
	_, err := Open(t.Context(), path, testOptions())
	kept(t, path, err)
	if _, err := os.Lstat(path); err == nil {
		t.Error("an empty store is in the place of the lost one")
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	db := openAt(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(filepath.Dir(path), archiveName)
	lost(t, archive)
	_, err = transfer.ArchiveMessages(t.Context(), path, archive, transfer.ArchiveRule{Before: 2, Now: 3})
	kept(t, archive, err)
	deferred := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, deferred, 2)
	lost(t, upgrade.SidecarPath(deferred))
	opts := testOptions()
	opts.OldestReader = 4
	_, err = Open(t.Context(), deferred, opts)
	kept(t, upgrade.SidecarPath(deferred), err)
}

// A store that is there when a broker looks for it, and is taken away before the
// broker opens it, is not rebuilt.
func TestSTO_17_AStoreThatVanishesIsNotMadeAnew(t *testing.T) {
	for name, vanish := range map[string]func(path string) error{
		"gone":  func(string) error { return nil },
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"without tables": func(path string) error {
			pool, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = pool.Exec("CREATE TABLE x (y); DROP TABLE x")
			}
			return errors.Join(err, pool.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			if err := vanish(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			opts := testOptions()
			opts.Existing = true
			if _, err := Open(t.Context(), path, opts); bridge.CodeOf(err) != bridge.Storage {
				t.Errorf("Open = %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("there are %d bytes in its place, before %d", len(after), len(before))
			}
			opts.Existing = false
			db, err := Open(t.Context(), path, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			opts.Existing = true
			if db, err = Open(t.Context(), path, opts); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// SQLite would make an empty file under the lost store's name, and drop its log.
func TestSTO_17_NoConnectionMakesAFileInALostStoresPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	if err := os.Remove(path); err != nil {
		t.Skipf("this system lets nobody take an open file away: %v", err)
	}
	works := map[string]func() error{
		"a checkpoint": func() error {
			pool := sqlitex.OpenAttached(sqlitex.WriterDSN(path), sqlitex.Attachment{}, "")
			return errors.Join(sqlitex.CheckpointWAL(t.Context(), pool), pool.Close())
		},
		"the archive": func() error {
			_, err := transfer.ArchiveMessages(t.Context(), path, filepath.Join(filepath.Dir(path), archiveName), transfer.ArchiveRule{Before: 2, Now: 3})
			return err
		},
		"a question": func() error {
			reader, err := OpenReader(t.Context(), path)
			if err == nil {
				err = reader.Close()
			}
			return err
		},
	}
	for name, work := range works {
		err := work()
		if _, statErr := os.Lstat(path); err == nil || !errors.Is(statErr, fs.ErrNotExist) {
			t.Errorf("%s: %v; there is a file: %v", name, err, statErr == nil)
		}
	}
	if err := db.Close(); err != nil {
		t.Log(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("closing made a file")
	}
}
