package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
)

// bareHome is a home as one is before its first store: settings, secrets, logs.
func bareHome(t testing.TB) Maintenance {
	t.Helper()
	c, err := maintenanceOf(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Home.Ensure(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), "config.json", `{"version": 1}`)
	write(t, c.Home.Dir(), "token", tokenText+"\n")
	write(t, c.Home.Dir(), "logs/bridge.log", "a line\n")
	return c
}

const (
	snapshotSet = "snapshot-1800000000001-11111111-1111-1111-1111-111111111111"
	recoverySet = "recovery-1800000000001-11111111-1111-1111-1111-111111111111"
	messagesSet = "messages-1800000000001-11111111-1111-1111-1111-111111111111"
)

// sign is what alone shows that a home has had a store.
type sign struct {
	path string // as it is named
	put  func(t testing.TB, c Maintenance, path string)
}

// file puts a file there, or one into the folder.
func file(inside, text string) func(t testing.TB, c Maintenance, path string) {
	return func(t testing.TB, c Maintenance, path string) {
		write(t, c.Home.Dir(), filepath.Join(path, inside), text)
	}
}

func rows(script string) func(t testing.TB, c Maintenance, path string) {
	return func(t testing.TB, c Maintenance, path string) { makeDatabase(t, c, path, script) }
}

var storeSigns = []sign{
	{"bridge.db-wal", file("", "commits")},
	{"bridge.db-journal", file("", "pages")},
	{"backups/" + snapshotSet, file("bridge.db", "a store")},
	{"backups/archive/" + snapshotSet, file("bridge.db", "a store")},
	{"backups/.pending-" + snapshotSet, file("bridge.db", "half a store")},
	{"backups/" + recoverySet, file("recovery.json", "{}")},
	{"message-backups/" + messagesSet, file("messages.db", "messages")},
	{"message-backups/archive/" + messagesSet, file("messages.db", "messages")},
	{".migration-snapshots/bridge.db.metadata-8-to-9", file("", "{}")},
	{"bridge.db.backup-7-to-9-20260101T000000.000Z", file("", "a store")},
	{"read-journal/0b5f.json", file("", "[]")},
	{"archive.db", rows("CREATE TABLE archived_messages (id); INSERT INTO archived_messages VALUES ('m1'); PRAGMA user_version = 1")},
	{"archive.db", file("", "no database that can be read")},
	{"history.db", rows("CREATE TABLE search_documents (doc); INSERT INTO search_documents VALUES (0)")},
	{"history.db", rows("CREATE TABLE search_documents (doc); CREATE TABLE search_upto (source); INSERT INTO search_upto VALUES ('messages')")},
	{"history.db", rows("CREATE TABLE history_messages (id); INSERT INTO history_messages VALUES ('h1'); PRAGMA user_version = 2")},
	{"questions.db", rows("CREATE TABLE questions (id); INSERT INTO questions VALUES ('q1'); PRAGMA user_version = 1")},
	{"compat.db", rows("CREATE TABLE outbox (id); CREATE TABLE decisions (id); INSERT INTO decisions VALUES ('d1'); PRAGMA user_version = 1")},
	{"logs/sizes.jsonl", file("", `{"at": 1800000000000, "total": 5, "parts": {"bridge.db": 4, "token": 1}}`+"\n")},
	{".storage-users/999999-lease", file("", `{"pid": 999999, "identity": "gone:1", "program": "the broker (serve)"}`)},
}

// vacant are the ways in which bridge.db can be no store.
var vacant = map[string]func(t testing.TB, c Maintenance){
	"it is gone":  func(testing.TB, Maintenance) {},
	"it is empty": func(t testing.TB, c Maintenance) { write(t, c.Home.Dir(), "bridge.db", "") },
	"it is a database without tables": func(t testing.TB, c Maintenance) {
		makeDatabase(t, c, "bridge.db", "CREATE TABLE x (y); DROP TABLE x")
	},
}

func TestSTO_17_EachSignOfALostStoreIsSeenAlone(t *testing.T) {
	for how, vacate := range vacant {
		for _, sign := range storeSigns {
			if how == "it is a database without tables" && strings.HasPrefix(sign.path, "bridge.db-") || how == "it is empty" && sign.path == "bridge.db-journal" {
				continue // it may be that file's own
			}
			t.Run(how+", "+sign.path, func(t *testing.T) {
				c := bareHome(t)
				sign.put(t, c, sign.path)
				vacate(t, c)
				before := listing(t, c.Home.Dir())
				has, err := check.HasStore(t.Context(), c.Home)
				want := "the store " + c.Home.DB() + " is lost: " + how + ", but " + sign.path + " shows that there was one. "
				if has || !errors.Is(err, check.ErrLost) || bridge.CodeOf(err) != bridge.Denied || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("HasStore = %v, %v; want %s", has, err, want)
				}
				for _, look := range []func(context.Context) (check.Report, error){c.Doctor().Check, c.Doctor().QuickReport} {
					r, err := look(t.Context())
					at := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Code == "store-lost" })
					if err != nil || r.OK || at < 0 || r.Findings[at].Path != "bridge.db" || !strings.Contains(r.Findings[at].Detail, sign.path) {
						t.Errorf("the report is %+v, %v", r.Findings, err)
					}
				}
				if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
					t.Errorf("looking changed the home:\n%s", diff)
				}
			})
		}
	}
}

func TestSTO_17_AHomeThatNeverHadAStoreIsNotCalledOneThatLostIt(t *testing.T) {
	never := map[string]func(t testing.TB, c Maintenance){
		"a new home": func(testing.TB, Maintenance) {},
		"folders of nothing": func(t testing.TB, c Maintenance) {
			makeFolders(t, c, "backups", "message-backups", ".migration-snapshots", ".storage-users", "read-journal")
		},
		"an index without rows": func(t testing.TB, c Maintenance) {
			makeDatabase(t, c, "history.db", "CREATE TABLE bridge_components (name, version); INSERT INTO bridge_components VALUES ('search', 1); CREATE TABLE search_documents (doc); CREATE VIRTUAL TABLE search_words USING fts5(body, content='')")
		},
		"an archive without rows":         rowless("archive.db", "CREATE TABLE archived_messages (id); PRAGMA user_version = 1"),
		"a store that a crash kept empty": func(t testing.TB, c Maintenance) { write(t, c.Home.Dir(), "history.db", "") },
		"sizes from before the first store": func(t testing.TB, c Maintenance) {
			file("", `{"at": 1800000000000, "total": 5, "parts": {"token": 5}}`+"\n")(t, c, "logs/sizes.jsonl")
		},
		"a failed first snapshot": func(t testing.TB, c Maintenance) {
			write(t, c.Home.Dir(), "backups/.pending-"+snapshotSet+"/config.json", "{}")
		},
		"a snapshot of settings alone": func(t testing.TB, c Maintenance) { mustBackup(t, c) },
		"a lease from before the first store": func(t testing.TB, c Maintenance) {
			if _, err := c.Worker().Register(); err != nil {
				t.Fatal(err)
			}
		},
		"a first store that a crash cut off": func(t testing.TB, c Maintenance) {
			write(t, c.Home.Dir(), "bridge.db", "")
			write(t, c.Home.Dir(), "bridge.db-journal", "its first page")
		},
		"settings of other programs": func(t testing.TB, c Maintenance) {
			write(t, c.Home.Dir(), "jobs.json", `{"version": 4, "jobs": []}`)
			write(t, c.Home.Dir(), "install/install.json", `{"version": 1, "kinds": {}}`)
		},
	}
	for name, make := range never {
		for how, vacate := range vacant {
			t.Run(name+", "+how, func(t *testing.T) {
				c := bareHome(t)
				make(t, c)
				vacate(t, c)
				if has, err := check.HasStore(t.Context(), c.Home); has || err != nil {
					t.Errorf("HasStore = %v, %v", has, err)
				}
				if found := findings(report(t, c)); has(found, "store-lost bridge.db") {
					t.Errorf("findings = %v", found)
				}
				if err := openStore(t, c).Close(); err != nil {
					t.Error(err)
				}
				if has, err := check.HasStore(t.Context(), c.Home); !has || err != nil {
					t.Errorf("with its first store: %v, %v", has, err)
				}
			})
		}
	}
}

func rowless(path, script string) func(testing.TB, Maintenance) {
	return func(t testing.TB, c Maintenance) { makeDatabase(t, c, path, script) }
}

func makeFolders(t testing.TB, c Maintenance, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(inventory.JoinHome(c.Home.Dir(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// A lease that was taken before the first store tells of a loss only once that
// store is there.
func TestSTO_17_ALeaseTellsOfAStoreOnceThereIsOne(t *testing.T) {
	c := bareHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(openStore(t, c).Close(), held.RecordStore()); err != nil {
		t.Fatal(err)
	}
	remove(t, c, "bridge.db")
	if _, err := check.HasStore(t.Context(), c.Home); !errors.Is(err, check.ErrLost) {
		t.Errorf("HasStore = %v", err)
	}
	again, err := c.Worker().Register() // by another that found none
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(held.Release(), again.Release()); err != nil {
		t.Fatal(err)
	}
}

// A first store that is cut off while its first commit is written has a log that
// holds nothing.
func TestSTO_17_ACutOffFirstCommitIsNoLoss(t *testing.T) {
	c := bareHome(t)
	makeDatabase(t, c, "bridge.db", "PRAGMA journal_mode = WAL; CREATE TABLE x (y); DROP TABLE x")
	write(t, c.Home.Dir(), "bridge.db-wal", "half a commit")
	if has, err := check.HasStore(t.Context(), c.Home); has || err != nil {
		t.Errorf("HasStore = %v, %v", has, err)
	}
	if err := openStore(t, c).Close(); err != nil {
		t.Error(err)
	}
}

// What is there but cannot be used is named by others, and is no loss.
func TestSTO_17_AStoreThatCannotBeReadIsNotCalledLost(t *testing.T) {
	for name, hurt := range map[string]func(c Maintenance){
		"rubbish": func(c Maintenance) { write(t, c.Home.Dir(), "bridge.db", strings.Repeat("rubbish\n", 1000)) },
		"folder":  func(c Maintenance) { remove(t, c, "bridge.db"); write(t, c.Home.Dir(), "bridge.db/x", "") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newHome(t)
			mustBackup(t, c)
			hurt(c)
			if _, err := check.HasStore(t.Context(), c.Home); err != nil {
				t.Errorf("HasStore = %v", err)
			}
		})
	}
}

func TestSTO_17_TheRefusalNamesWhatBringsMostBack(t *testing.T) {
	c := newHome(t)
	says := func(want ...string) {
		t.Helper()
		_, err := check.HasStore(t.Context(), c.Home)
		for _, want := range append(want, "To start empty, run `bridge serve --new-store --home "+c.Home.Dir()+"`; Bridge keeps what is left.") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	}
	first := mustBackup(t, c)
	messages := mustBackupMessages(t, c)
	second := mustBackup(t, c)
	remove(t, c, "bridge.db")
	says("To restore the newest snapshot, run `bridge doctor --restore " + filepath.Base(second.Path) + " --home " + c.Home.Dir() + "`. ")
	remove(t, c, "backups/"+filepath.Base(second.Path)+"/bridge.db") // a set without its store helps nobody
	says("--restore " + filepath.Base(first.Path))
	if err := os.MkdirAll(inventory.JoinHome(c.Home.Dir(), "backups/archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	rename(t, c, "backups/"+filepath.Base(first.Path), "backups/archive/"+filepath.Base(first.Path))
	says("--restore backups/archive/" + filepath.Base(first.Path))
	if done, err := c.Restores().Restore(t.Context(), "backups/archive/"+filepath.Base(first.Path)); err != nil || done.Files == 0 {
		t.Fatalf("what it names is not restored: %+v, %v", done, err)
	}
	again, err := c.Restores().Restore(t.Context(), "backups/archive/"+filepath.Base(first.Path))
	if err != nil {
		t.Fatal(err)
	}
	remove(t, c, "bridge.db")
	if err := os.RemoveAll(inventory.JoinHome(c.Home.Dir(), "backups/archive")); err != nil {
		t.Fatal(err)
	}
	says("To restore the newest recovery set, run `bridge doctor --restore " + filepath.Base(again.Recovery) + " --home " + c.Home.Dir() + "`. ")
	if err := os.RemoveAll(c.Home.Backups()); err != nil {
		t.Fatal(err)
	}
	says("There is no snapshot. To restore the newest backup of the messages, run `bridge doctor --merge " + filepath.Base(messages.Path) + " --home " + c.Home.Dir() + "`. ")
	if err := os.RemoveAll(c.Home.MessageBackups()); err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), "bridge.db-wal", "commits")
	_, err = check.HasStore(t.Context(), c.Home)
	if want := "There is no snapshot. To start empty, run `bridge serve --new-store --home " + c.Home.Dir() + "`; Bridge keeps what is left."; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v does not end with %q", err, want)
	}
}

// Nothing else takes a lost store's place, or takes away what shows the loss.
func TestSTO_17_OtherMaintenanceLeavesALostStoreAlone(t *testing.T) {
	c := newHome(t)
	mustBackup(t, c)
	mustBackupMessages(t, c)
	remove(t, c, "bridge.db")
	write(t, c.Home.Dir(), ".storage-users/999999-lease", `{"pid": 999999, "identity": "gone:1"}`)
	before := listing(t, c.Home.Dir())
	for name, work := range map[string]func() error{
		"backup":             func() error { _, err := c.Snapshots().Backup(t.Context()); return err },
		"backup of messages": func() error { _, err := c.Snapshots().BackupMessages(t.Context(), noPause); return err },
		"fix":                func() error { _, err := c.Archive().Fix(t.Context()); return err },
		"merge":              func() error { _, err := c.Restores().Merge(t.Context(), ""); return err },
	} {
		if err := work(); !errors.Is(err, check.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := listing(t, c.Home.Dir())
	delete(before, ".")
	delete(after, ".") // the lock of the merge came and went
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the home changed:\n%s", diff)
	}
}

func noPause(context.Context) error { return nil }

// lostHome is a home that lost its store and still has everything that goes with one.
func lostHome(t testing.TB) Maintenance {
	t.Helper()
	c := newHome(t)
	mustBackup(t, c)
	remove(t, c, "bridge.db")
	write(t, c.Home.Dir(), "bridge.db-wal", "commits that are nowhere else")
	write(t, c.Home.Dir(), "bridge.db-shm", "their index")
	makeDatabase(t, c, "history.db", "CREATE TABLE bridge_components (name TEXT, version INTEGER); INSERT INTO bridge_components VALUES ('search', 1); CREATE TABLE search_documents (doc, kind, id, at); INSERT INTO search_documents VALUES (0, 0, 'm1', 1); PRAGMA user_version = 2")
	makeDatabase(t, c, "compat.db", "CREATE TABLE outbox (id); INSERT INTO outbox VALUES ('m1'); PRAGMA user_version = 1")
	other := newHome(t)
	onStore(t, other, "UPDATE messages SET read_at = 2000")
	other.ArchiveAge = time.Hour
	if _, err := other.Archive().Messages(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), "archive.db", string(read(t, other.Home.Dir(), "archive.db")))
	return c
}

func TestSTO_17_AReplacementKeepsAllThatIsLeftAndLeavesAHealthyHome(t *testing.T) {
	c := lostHome(t)
	before := managedBytes(t, c)
	set, err := c.Restores().Replace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range before {
		if got := string(read(t, filepath.Join(set, inventory.DisplacedDir), path)); got != want {
			t.Errorf("%s is not kept", path)
		}
		isOfStore := strings.HasPrefix(path, "bridge.db") || strings.HasPrefix(path, "history.db") || strings.HasPrefix(path, "compat.db") || strings.HasPrefix(path, "read-journal/")
		if isOfStore != inventory.IsMissing(inventory.JoinHome(c.Home.Dir(), path)) {
			t.Errorf("%s belonged to the lost store: %v, and is missing: %v", path, isOfStore, !isOfStore)
		}
	}
	if _, err := check.HasStore(t.Context(), c.Home); !errors.Is(err, check.ErrLost) {
		t.Errorf("without a new store: %v", err)
	}
	db, err := store.Open(t.Context(), c.Home.DB(), store.Options{Now: c.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := report(t, c)
	if got, want := findings(r), []string{"store-replaced backups/" + filepath.Base(set)}; !r.OK || !slices.Equal(got, want) {
		t.Errorf("findings = %v, want %v", got, want)
	}
	if has, err := check.HasStore(t.Context(), c.Home); !has || err != nil {
		t.Errorf("HasStore = %v, %v", has, err)
	}
	// What the refusal named still helps, and takes the word away.
	if _, err := c.Restores().Restore(t.Context(), ""); err != nil || storedMessages(t, c) != 40 {
		t.Errorf("the restore of the snapshot: %v", err)
	}
	if found := findings(report(t, c)); len(found) > 0 {
		t.Errorf("after the restore: %v", found)
	}
}

func TestSTO_17_AReplacementCanBeUndone(t *testing.T) {
	c := lostHome(t)
	before := managedBytes(t, c)
	set, err := c.Restores().Replace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := openStore(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Restore(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
		t.Errorf("not undone:\n%s", diff)
	}
}

// What another program keeps in history.db stays in force.
func TestSTO_17_AReplacementTakesOnlyTheIndexOutOfAHistory(t *testing.T) {
	c := lostHome(t)
	if err := os.Remove(c.Home.History()); err != nil {
		t.Fatal(err)
	}
	makeDatabase(t, c, "history.db", "CREATE TABLE history_messages (id); INSERT INTO history_messages VALUES ('h1'); CREATE TABLE bridge_components (name TEXT, version INTEGER); INSERT INTO bridge_components VALUES ('search', 1); CREATE TABLE search_documents (doc); INSERT INTO search_documents VALUES (0); PRAGMA user_version = 2")
	if _, err := c.Restores().Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, err := transfer.Counts(t.Context(), c.Home.History(), false)
	if diff := cmp.Diff(map[string]int{"history_messages": 1, "bridge_components": 0}, counts); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	write(t, c.Home.Dir(), "history.db", "rubbish that nobody can read")
	remove(t, c, "backups/"+snapshotOf(t, c)+"/bridge.db")
	if _, err := c.Restores().Replace(t.Context()); err != nil {
		t.Errorf("with a history that cannot be read: %v", err)
	}
	if text := string(read(t, c.Home.Dir(), "history.db")); text != "rubbish that nobody can read" {
		t.Errorf("it is %q", text)
	}
}

func snapshotOf(t *testing.T, c Maintenance) string {
	t.Helper()
	found, err := inventory.Sets(c.Home.Backups(), inventory.SnapshotName)
	if err != nil || len(found) == 0 {
		t.Fatal(err)
	}
	return found[0].Path
}

func TestSTO_17_AReplacementIsRefusedWhereItMayNot(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(t *testing.T, c Maintenance)
		says string
		code bridge.Code
	}{
		"a store is there": {func(t *testing.T, c Maintenance) {
			remove(t, c, "bridge.db-wal")
			remove(t, c, "compat.db")
			if err := openStore(t, c).Close(); err != nil {
				t.Fatal(err)
			}
		}, "is not lost", bridge.Conflict},
		"a live writer": {func(t *testing.T, c Maintenance) {
			held, err := json.Marshal(lease.Holder{PID: os.Getpid(), Program: "a test"})
			if err != nil {
				t.Fatal(err)
			}
			write(t, c.Home.Dir(), fmt.Sprintf(".storage-users/%d-lease", os.Getpid()), string(held))
		}, "is at work", bridge.Denied},
		"interrupted maintenance": {func(t *testing.T, c Maintenance) {
			write(t, c.Home.Dir(), ".maintenance-lock", `{"pid": 999999, "identity": "gone:1", "what": "restore"}`)
		}, "was interrupted", bridge.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			c := lostHome(t)
			tt.do(t, c)
			before := managedBytes(t, c)
			if _, err := c.Restores().Replace(t.Context()); bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Replace = %v", err)
			}
			if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
				t.Errorf("it changed the home:\n%s", diff)
			}
		})
	}
}
