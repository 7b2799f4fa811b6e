package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/upgrade"
)

// upgradeAt upgrades the store at path with a step hook.
func upgradeAt(ctx context.Context, path string, step func(name string, on *sql.Conn) error) error {
	_, err := upgrade.Prepare(ctx, path, upgrade.Options{Now: testOptions().Now, Log: slog.New(slog.DiscardHandler), Step: step})
	return err
}

// steps are the named points of an upgrade from a version, from the code itself.
func steps(t testing.TB, version int) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, version)
	var names []string
	if err := upgradeAt(context.Background(), path, func(name string, _ *sql.Conn) error {
		names = append(names, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// requireRows fails unless every row of before is still there.
func requireRows(t testing.TB, before, after map[string]string) {
	t.Helper()
	for table, rows := range before {
		if diff := cmp.Diff(rows, after[table]); diff != "" {
			t.Errorf("the rows of %s (-before +after):\n%s", table, diff)
		}
	}
}

// copies are the published copies beside the store.
func copies(t testing.TB, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".backup-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestVER_01_EveryVersionIsUpgradedWithAllItsRows(t *testing.T) {
	for version := range schema.Version + 1 {
		t.Run(fmt.Sprintf("VER-01 from %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			buildField(t, path, version)
			before := contents(t, path)
			db, err := Open(t.Context(), path, testOptions())
			if err != nil {
				t.Fatal(err)
			}
			if db.Version() != schema.Version {
				t.Errorf("Version = %d", db.Version())
			}
			row := mustFind(t, db.Reader, "m1")
			if len(row.Deliveries) != 2 || row.Deliveries[0].ReadAt != 2500 || row.ReplyTo != "old-✓" {
				t.Errorf("an old message reads as %+v", row)
			}
			if talk, err := db.Conversation(t.Context(), "carol", 0, 10); err != nil || len(talk) != 1 {
				t.Errorf("an old conversation reads as %v, %v", ids(talk), err)
			}
			if version >= 2 {
				if d := mustFind(t, db.Reader, "archived-old-✓").Deliveries[0]; d.Expired.At != 77 || d.Stage() != bridge.StageExpired {
					t.Errorf("an archived message of the field reads as %+v", d)
				}
			}
			askEverything(t, db.Reader)
			requireRows(t, before, contents(t, path))

			// The upgraded store takes part in everything, beside the field's own triggers.
			appendAll(t, db, note("fresh", "alice", "new ✓", 9000, "bob"))
			if version >= 4 && !strings.Contains(contents(t, path)["history_pending"], "new") && !strings.Contains(contents(t, path)["history_pending"], fmt.Sprintf("%X", "fresh")) {
				t.Error("the field's trigger does not work any more")
			}
			if _, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 9500, Limit: 100}); err != nil {
				t.Errorf("Expire on an upgraded store: %v", err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if got := checkWhole(t, path); got != schema.Version {
				t.Errorf("user_version = %d", got)
			}
			openAt(t, path) // a second opening finds nothing to do
			if found := copies(t, path); len(found) > 1 {
				t.Errorf("opening again made another copy: %v", found)
			}
		})
	}
}

func TestVER_01_FreshAndUpgradedSchemasAgree(t *testing.T) {
	shape := func(path string) []string {
		pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro"))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		return column(t, pool, `SELECT s.name || '(' || (SELECT group_concat(name || ' ' || pk) FROM pragma_table_info(s.name)) || ')'
			FROM sqlite_schema s WHERE type = 'table' AND name NOT LIKE 'unknown%' ORDER BY s.name`)
	}
	fresh := filepath.Join(t.TempDir(), "bridge.db")
	newStore(t, fresh)
	for version := range schema.Version + 1 {
		path := filepath.Join(t.TempDir(), "bridge.db")
		buildField(t, path, version)
		if err := upgradeAt(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(shape(fresh), shape(path)); diff != "" {
			t.Errorf("from %d (-fresh +upgraded):\n%s", version, diff)
		}
	}
}

func TestVER_02_TheCopyIsTheStoreBeforeItsUpgrade(t *testing.T) {
	for version := range schema.Version - 1 {
		path := filepath.Join(t.TempDir(), "bridge.db")
		buildField(t, path, version)
		before := contents(t, path)
		if err := upgradeAt(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		found := copies(t, path)
		if len(found) != 1 || !strings.Contains(found[0], fmt.Sprintf(".backup-%d-to-9-", version)) {
			t.Fatalf("from %d: copies %v, want one named for its versions", version, found)
		}
		if got := checkWhole(t, found[0]); got != version {
			t.Errorf("the copy has version %d, want %d", got, version)
		}
		if diff := cmp.Diff(before, contents(t, found[0])); diff != "" {
			t.Errorf("from %d, the copy (-before +copy):\n%s", version, diff)
		}
	}
}

func TestVER_02_TheCopyIsMadeAgainWhenAnotherWriterCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 3)
	rounds := 0
	err := upgradeAt(t.Context(), path, func(name string, _ *sql.Conn) error {
		if name == "copied" && rounds < 3 {
			rounds++
			inStore(t, path, fmt.Sprintf("INSERT INTO job_notes VALUES (%d)", rounds))
		}
		if name == "copy written" && rounds == 0 {
			inStore(t, path, "CREATE TABLE job_notes (k)")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := copies(t, path)
	if rounds != 3 || len(found) != 1 {
		t.Fatalf("%d rounds left the copies %v", rounds, found)
	}
	requireRows(t, contents(t, found[0]), contents(t, path))
	if got := contents(t, found[0])["job_notes"]; strings.Count(got, "\n") != 2 {
		t.Errorf("the copy lacks what the other writer committed: %q", got)
	}
	requireNoPending(t, filepath.Dir(path))

	t.Run("VER-02 it gives up on a writer that never stops", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bridge.db")
		buildField(t, path, 3)
		inStore(t, path, "CREATE TABLE job_notes (k)")
		err := upgradeAt(t.Context(), path, func(name string, _ *sql.Conn) error {
			if name == "copied" {
				inStore(t, path, "INSERT INTO job_notes VALUES (1)")
			}
			return nil
		})
		if bridge.CodeOf(err) != bridge.Storage || checkWhole(t, path) != 3 || len(copies(t, path)) != 0 {
			t.Errorf("upgrade = %v, copies %v", err, copies(t, path))
		}
		requireNoPending(t, filepath.Dir(path))
	})
}

func requireNoPending(t testing.TB, dir string) {
	t.Helper()
	for name := range listing(t, dir) {
		if disk.IsTemp(name) {
			t.Errorf("an unfinished file is left: %s", name)
		}
	}
}

func TestVER_02_AFailureAtAnyStepLeavesTheStoreAsItWas(t *testing.T) {
	for version := range schema.Version + 1 {
		for _, at := range steps(t, version) {
			t.Run(fmt.Sprintf("VER-02 from %d at %s", version, at), func(t *testing.T) {
				t.Parallel() // the disk is what they wait for
				path := filepath.Join(t.TempDir(), "bridge.db")
				buildField(t, path, version)
				before := contents(t, path)
				fault := errors.New("fault")
				locked := false
				err := upgradeAt(t.Context(), path, func(name string, _ *sql.Conn) error {
					if name == "schema restored" {
						locked = isLocked(path)
					}
					if name == at {
						return fault
					}
					return nil
				})
				if !errors.Is(err, fault) {
					t.Fatalf("upgrade = %v, want the fault", err)
				}
				requireNoPending(t, filepath.Dir(path))
				if at == "committed" {
					requireRows(t, before, contents(t, path))
					return
				}
				if diff := cmp.Diff(before, contents(t, path)); diff != "" {
					t.Errorf("the store (-before +after):\n%s", diff)
				}
				if got := checkWhole(t, path); got != version {
					t.Errorf("the version is %d, want %d", got, version)
				}
				if (strings.HasPrefix(at, "step") || at == "verified") && !locked {
					t.Error("the writer's lock was given up before the recovery")
				}
				openAt(t, path) // and a later opening succeeds
			})
		}
	}
}

// isLocked reports whether another program cannot write now.
func isLocked(path string) bool {
	pool, err := sql.Open("sqlite", "file:"+sqlitex.EscapePath(path)+"?_pragma=busy_timeout(0)")
	if err != nil {
		return false
	}
	defer pool.Close()
	_, err = pool.Exec("BEGIN IMMEDIATE; ROLLBACK")
	return err != nil
}

func TestVER_02_TheCopyRestoresWhatTheTablesHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 5)
	before := contents(t, path)
	fault := errors.New("fault")
	err := upgradeAt(t.Context(), path, func(name string, on *sql.Conn) error {
		switch name {
		case "before savepoint": // rows go where no savepoint can bring them back
			_, err := on.ExecContext(t.Context(), `DELETE FROM messages WHERE recipient = 'carol';
				DELETE FROM "unknown ""table" WHERE k = 1; INSERT INTO session_bindings VALUES ('x', 'y', 1)`)
			return err
		case "step 7":
			return fault
		}
		return nil
	})
	if !errors.Is(err, fault) {
		t.Fatalf("upgrade = %v, want the fault", err)
	}
	if diff := cmp.Diff(before, contents(t, path)); diff != "" {
		t.Errorf("the store (-before +after):\n%s", diff)
	}
	if got := checkWhole(t, path); got != 5 {
		t.Errorf("the version is %d, want 5", got)
	}
}

func TestVER_02_AFailedRecoveryRollsBackAndKeepsTheCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 5)
	before := contents(t, path)
	err := upgradeAt(t.Context(), path, func(name string, _ *sql.Conn) error {
		if name == "step 7" || name == "schema restored" {
			return errors.New("fault at " + name)
		}
		return nil
	})
	found := copies(t, path)
	if bridge.CodeOf(err) != bridge.Storage || len(found) != 1 || !strings.Contains(err.Error(), found[0]) {
		t.Fatalf("upgrade = %v, copies %v; want a sentence that names the kept copy", err, found)
	}
	if diff := cmp.Diff(before, contents(t, path)); diff != "" {
		t.Errorf("the store (-before +after):\n%s", diff)
	}
	requireRows(t, before, contents(t, found[0]))
}

func TestVER_02_ADamagedStoreIsNotUpgraded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 3)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The pages behind the first hold tables and indexes: spoil one.
	copy(data[2*4096:], strings.Repeat("spoiled ", 200))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	err = upgradeAt(t.Context(), path, nil)
	if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("upgrade of a damaged store = %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !slices.Equal(data, after) {
		t.Errorf("the damaged store was changed: %v", err)
	}
	requireNoPending(t, filepath.Dir(path))
}

func TestVER_03_TheStepFrom8KeepsALabelledSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 8)
	before := contents(t, path)
	if err := upgradeAt(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if found := copies(t, path); len(found) != 0 {
		t.Errorf("the additive step made a whole copy: %v", found)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".migration-snapshots", "*"))
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "schema-and-metadata-8-to-9") {
		t.Fatalf("snapshots %v, %v; want one labelled", found, err)
	}
	var snapshot upgrade.MetadataSnapshot
	data, err := os.ReadFile(found[0])
	if err == nil {
		err = json.Unmarshal(data, &snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Kind != "schema-and-metadata" || snapshot.FullBackup || !strings.Contains(snapshot.Note, "not a full backup") || snapshot.From != 8 || snapshot.To != 9 {
		t.Errorf("the snapshot is labelled %+v", snapshot)
	}
	want := [][]string{{"identity", "name", "session_id", "agent", "learned_at"}, {"'peer-1'", "'náme''s'", "'session-1'", "'claude'", "3"}}
	if diff := cmp.Diff(want, snapshot.Tables["peer_names"]); diff != "" {
		t.Errorf("peer_names (-want +got):\n%s", diff)
	}
	if snapshot.RowCounts["messages"] != 3 || !strings.Contains(strings.Join(snapshot.Schema, "\n"), "CREATE TRIGGER history_messages") {
		t.Errorf("the snapshot lacks counts or schema: %+v", snapshot.RowCounts)
	}
	if strings.Contains(string(data), "多言語") {
		t.Error("the snapshot holds message text")
	}
	requireRows(t, before, contents(t, path))
}

func TestSTO_13_CopiesOfUpgradesAreNeverReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bridge.db")
	for range 3 { // the same clock, the same versions
		buildField(t, path, 4)
		if err := upgradeAt(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bridge.db", "bridge.db-wal", "bridge.db-shm"} {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(t.TempDir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	if found := copies(t, path); len(found) != 3 {
		t.Errorf("three upgrades left the copies %v", found)
	}
}

// TestVER_02_AKillAtAnyStepLeavesOneWholeSchema kills a real process at every
// step of the upgrade from every version.
func TestVER_02_AKillAtAnyStepLeavesOneWholeSchema(t *testing.T) {
	for version := range schema.Version + 1 {
		for _, at := range steps(t, version) {
			t.Run(fmt.Sprintf("VER-02 from %d at %s", version, at), func(t *testing.T) {
				t.Parallel() // the disk is what they wait for
				path := filepath.Join(t.TempDir(), "bridge.db")
				buildField(t, path, version)
				before := contents(t, path)
				child := helper(t, "upgrade", path+"\n"+at)
				if line := child.line(t); line != "killing" {
					t.Fatalf("the child says %q", line)
				}
				if err := child.cmd.Wait(); err == nil {
					t.Fatal("the child lived on")
				}
				after := contents(t, path)
				requireRows(t, before, after)
				got := checkWhole(t, path)
				switch {
				case got == version && at != "committed":
					if diff := cmp.Diff(before, after); diff != "" {
						t.Errorf("the old schema is not whole (-before +after):\n%s", diff)
					}
				case got != schema.Version:
					t.Errorf("the version is %d, neither old nor new", got)
				}
				for _, kept := range copies(t, path) {
					requireRows(t, before, contents(t, kept))
				}
				db := openAt(t, path)
				requireRows(t, before, contents(t, path))
				appendAll(t, db, note("after", "a", "x", 1, "b"))
			})
		}
	}
}

func init() {
	helperParts["upgrade"] = func(ctx context.Context, args string) error {
		path, at, _ := strings.Cut(args, "\n")
		return upgradeAt(ctx, path, func(name string, _ *sql.Conn) error {
			if name == at {
				fmt.Println("killing")
				return killSelf()
			}
			return nil
		})
	}
}

// killSelf ends the process at once, without any deferred call.
func killSelf() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}
