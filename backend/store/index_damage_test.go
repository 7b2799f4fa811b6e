package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/sqlitex"
)

// TestDamageThatAQuestionMeetsIsMended: the goroutine has everything indexed and
// would not look again by itself.
func TestDamageThatAQuestionMeetsIsMended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"))
	wordIDs(t, db, wordQuery(t, "word"))
	damage := damaged(t)
	if err := db.index.asked(func(sqlitex.Querier) error { return damage }); err == nil {
		t.Error("the question was answered")
	}
	kept := filepath.Join(filepath.Dir(path), "archive", "orphaned", "*", "history.db")
	eventually(t, "the damaged index is put away", func() bool {
		found, err := filepath.Glob(kept)
		return err == nil && len(found) == 1
	})
	if got := wordIDs(t, db, wordQuery(t, "word")); len(got) != 1 {
		t.Errorf("found %v in the index that was made anew", got)
	}
	// What the store itself lacks is not the index's damage.
	if err := db.index.asked(func(sqlitex.Querier) error { return ofSource(damage) }); err == nil {
		t.Error("the question was answered")
	}
	if met := db.index.damage.Load(); met != nil {
		t.Errorf("the index is suspected: %v", *met)
	}
}

// damaged is what SQLite says of a damaged file.
func damaged(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", sqlitex.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.ExecContext(t.Context(), "SELECT * FROM sqlite_schema")
	if !isDamage(err) {
		t.Fatalf("%v is no damage", err)
	}
	return err
}

// TestVER_06_WhatIsNoFileInThePlaceOfTheIndexIsLeftAsItIs: a link may lead to
// anything.
func TestVER_06_WhatIsNoFileInThePlaceOfTheIndexIsLeftAsItIs(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.db")
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink(elsewhere, path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run("VER-06 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			if err := make(indexPath(path)); err != nil {
				t.Fatal(err)
			}
			db := openIndexed(t, path)
			appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"))
			eventually(t, "the search says what is there", func() bool {
				_, _, err := db.SearchWords(t.Context(), wordQuery(t, "word"))
				return bridge.CodeOf(err) == bridge.Storage && strings.Contains(err.Error(), "is not a regular file")
			})
			if info, err := os.Stat(elsewhere); err != nil || info.Size() != 0 {
				t.Errorf("what the link leads to: %v, %v", info, err)
			}
		})
	}
}
