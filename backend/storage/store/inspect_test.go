package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// listing is every file below dir with its mode and the checksum of its bytes.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files[name] = info.Mode().String()
		if info.Mode().IsRegular() && info.Mode().Perm()&0o400 != 0 {
			sum, _, err := disk.Checksum(path)
			files[name] += " " + sum
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// newStore makes a closed store with a message in it.
func newStore(t testing.TB, path string) {
	t.Helper()
	db, err := Open(context.Background(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, db, note("m1", "alice", "hello", 1000, "bob"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t testing.TB, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// refusals are the files that must be refused, each with its sentence.
var refusals = []struct {
	name string
	make func(t *testing.T, path string)
	code bridge.Code
	says string
}{
	{"newer schema", func(t *testing.T, path string) {
		newStore(t, path)
		inStore(t, path, "PRAGMA user_version = 10")
	}, bridge.Unsupported, "has schema version 10 and this Bridge knows versions up to 9: use a newer Bridge"},
	{"newer schema, only its number", func(t *testing.T, path string) {
		inStore(t, path, "PRAGMA user_version = 44")
	}, bridge.Unsupported, "has schema version 44"},
	{"newer component", func(t *testing.T, path string) {
		newStore(t, path)
		inStore(t, path, "UPDATE bridge_components SET version = 2 WHERE name = 'deliveries'")
	}, bridge.Unsupported, "has deliveries version 2 and this Bridge knows versions up to 1"},
	{"foreign database", func(t *testing.T, path string) {
		inStore(t, path, "CREATE TABLE songs (id, title)", "INSERT INTO songs VALUES (1, 'x')")
	}, bridge.Unsupported, "is not a Bridge store"},
	{"foreign database with a log", func(t *testing.T, path string) {
		inStore(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE songs (id, title)")
	}, bridge.Unsupported, "is not a Bridge store"},
	{"foreign database with a version", func(t *testing.T, path string) {
		inStore(t, path, "CREATE TABLE songs (id, title)", "PRAGMA user_version = 3")
	}, bridge.Unsupported, "is not a Bridge store"},
	{"foreign table called messages", func(t *testing.T, path string) {
		inStore(t, path, "CREATE TABLE messages (id, subject)")
	}, bridge.Unsupported, "is not a Bridge store"},
	{"version without tables", func(t *testing.T, path string) {
		inStore(t, path, "PRAGMA user_version = 3")
	}, bridge.Unsupported, "is not a Bridge store"},
	{"garbage", func(t *testing.T, path string) { writeFile(t, path, strings.Repeat("garbage ", 5000)) }, bridge.Storage, "is not a SQLite database"},
	{"a short text", func(t *testing.T, path string) { writeFile(t, path, "hello\n") }, bridge.Storage, "is not a SQLite database"},
	{"truncated between pages", func(t *testing.T, path string) {
		newStore(t, path)
		truncate(t, path, 3*4096)
	}, bridge.Storage, "is damaged: restore a backup"},
	{"truncated in the first page", func(t *testing.T, path string) {
		newStore(t, path)
		truncate(t, path, 1000)
	}, bridge.Storage, "is damaged: restore a backup"},
	{"empty with a log", func(t *testing.T, path string) {
		writeFile(t, path, "")
		writeFile(t, path+"-wal", "something")
	}, bridge.Storage, "is empty but its log"},
	{"a folder", func(t *testing.T, path string) {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}, bridge.Storage, "is a folder, not a file"},
	{"a symbolic link", func(t *testing.T, path string) {
		newStore(t, path+".real")
		if err := os.Symlink(path+".real", path); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}, bridge.Storage, "is a symbolic link"},
	{"unreadable", func(t *testing.T, path string) {
		newStore(t, path)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if file, err := os.Open(path); err == nil {
			file.Close()
			t.Skip("this user reads every file: run the test as another to prove this")
		}
	}, bridge.Storage, "cannot be opened: check that its owner may read and write it"},
}

func TestVER_06_WhatIsNoStoreOfOursIsRefusedUnchanged(t *testing.T) {
	for _, tt := range refusals {
		t.Run("VER-06 "+tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "bridge.db")
			tt.make(t, path)
			before := listing(t, dir)
			check := func(what string, err error) {
				t.Helper()
				if bridge.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.says) || !strings.Contains(fmt.Sprint(err), path) {
					t.Errorf("%s = %s %q; want %s, naming the file, with %q", what, bridge.CodeOf(err), err, tt.code, tt.says)
				}
				if strings.ContainsAny(fmt.Sprint(err), "\n") {
					t.Errorf("%s answers more than a sentence: %q", what, err)
				}
				if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
					t.Errorf("%s changed files (-before +after):\n%s", what, diff)
				}
			}
			_, err := Open(t.Context(), path, testOptions())
			check("Open", err)
			_, err = OpenReader(t.Context(), path)
			check("OpenReader", err)
		})
	}
}

func TestAMissingOrEmptyFileBecomesAStore(t *testing.T) {
	for name, make := range map[string]func(path string){"missing": func(string) {}, "empty": func(path string) { writeFile(t, path, "") }} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			make(path)
			db := openAt(t, path)
			appendAll(t, db, note("m", "a", "x", 1, "b"))
			info, err := os.Stat(path)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("the store's mode is %v, %v; want 0600", info.Mode(), err)
			}
		})
	}
}

func TestDEC_19_TheReaderChangesNothing(t *testing.T) {
	ctx := t.Context()
	t.Run("DEC-19 no store", func(t *testing.T) {
		dir := t.TempDir()
		_, err := OpenReader(ctx, filepath.Join(dir, "bridge.db"))
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("OpenReader with no store: %v, want ErrNotExist", err)
		}
		if files := listing(t, dir); len(files) != 1 {
			t.Errorf("OpenReader made files: %v", files)
		}
	})
	for version := range schema.Version + 1 {
		t.Run(fmt.Sprintf("DEC-19 the broker is down, schema %d", version), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "bridge.db")
			buildField(t, path, version)
			before := listing(t, dir)
			reader, err := OpenReader(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			askEverything(t, reader)
			found, err := reader.Decisions(ctx, decision.Lookup{History: true})
			if want := map[bool]int{true: 2}[version >= 3]; err != nil || len(found) != want {
				t.Errorf("Decisions = %d, %v; want %d", len(found), err, want)
			}
			if err := reader.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("reading changed files (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("DEC-19 an empty file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bridge.db")
		writeFile(t, path, "")
		reader, err := OpenReader(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		askEverything(t, reader)
	})
}

func TestDEC_19_TheReadersConnectionsRefuseToWrite(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	reader, err := OpenReader(ctx, db.path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for name, r := range map[string]*Reader{"alone": reader, "beside the writer": db.Reader} {
		err := r.read(ctx, func(v view) error {
			rows, err := v.Query(ctx, "DELETE FROM messages RETURNING id")
			return sqlitex.Each(rows, err, func(*sql.Rows) error { return nil })
		})
		if err == nil {
			t.Errorf("the reader %s wrote", name)
		}
	}
}

func askEverything(t testing.TB, r *Reader) {
	t.Helper()
	ctx := context.Background()
	var err error
	ask := func(name string, answer any, askErr error) {
		if askErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, askErr))
		}
	}
	recent, e := r.Recent(ctx, 10)
	ask("Recent", recent, e)
	talk, e := r.Conversation(ctx, "bob", 0, 10)
	ask("Conversation", talk, e)
	unread, e := r.Unread(ctx, "bob", 10, nil)
	ask("Unread", unread, e)
	count, e := r.UnreadCount(ctx, "bob")
	ask("UnreadCount", count, e)
	counts, e := r.UnreadCounts(ctx)
	ask("UnreadCounts", counts, e)
	receipts, e := r.Delivered(ctx, "claude:s")
	ask("Delivered", receipts, e)
	found, e := r.Decisions(ctx, decision.Lookup{})
	ask("Decisions", found, e)
	peers, e := r.Peers(ctx)
	ask("Peers", peers, e)
	if _, e := r.Find(ctx, "no such message"); bridge.CodeOf(e) != bridge.NotFound {
		ask("Find", nil, e)
	}
	if err != nil {
		t.Error(err)
	}
	if recent == nil || talk == nil || unread == nil || counts == nil || receipts == nil || found == nil || peers == nil {
		t.Error("an empty list is nil")
	}
}

func TestDEC_19_TheReaderFollowsABrokerThatComesAndGoes(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "bridge.db")
	newStore(t, path)
	reader, err := OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	check := func(when string, want ...string) {
		t.Helper()
		rows, err := reader.Recent(ctx, 10)
		if diff := cmp.Diff(want, ids(rows)); err != nil || diff != "" {
			t.Errorf("%s: Recent: %v (-want +got):\n%s", when, err, diff)
		}
	}
	check("before the broker", "m1")
	for round := range 3 {
		db, err := Open(ctx, path, testOptions())
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("round-", round)
		appendAll(t, db, note(id, "a", "x", int64(2000+round), "b"))
		if rows, err := reader.Recent(ctx, 1); err != nil || len(rows) != 1 || rows[0].ID != id {
			t.Errorf("beside the broker: Recent = %v, %v; want %s", ids(rows), err, id)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check("after the broker", "round-2", "round-1", "round-0", "m1")
}

func TestReaderRefusesAStoreThatBecameNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	newStore(t, path)
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	inStore(t, path, "PRAGMA user_version = 10")
	if _, err := reader.Recent(t.Context(), 1); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("Recent on a newer store: %v, want unsupported", err)
	}
}
