package fulltext

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/search"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// letters is a store of messages alone, without an archive.
type letters struct{ pool *sql.DB }

type lettersView struct{ sqlitex.Querier }

func (lettersView) Has(table string) bool { return table == "messages" }

func (l letters) Read(_ context.Context, archive bool, ask func(View) error) error {
	if archive {
		return nil
	}
	return ask(lettersView{sqlitex.OnPool(l.pool)})
}

// write stores one more message.
func (l letters) write(t *testing.T, id, body string) {
	t.Helper()
	if _, err := l.pool.Exec("INSERT INTO messages (id, created_at, body) VALUES (?, 1000, ?)", id, body); err != nil {
		t.Fatal(err)
	}
}

// startLetters has an index follow letters, both in a folder of the test's.
func startLetters(t *testing.T) (letters, *Index) {
	t.Helper()
	dir := t.TempDir()
	pool, err := sql.Open("sqlite", sqlitex.DSN(filepath.Join(dir, "letters.db")))
	if err == nil {
		_, err = pool.Exec("CREATE TABLE messages (id TEXT, created_at INTEGER, body TEXT)")
	}
	if err != nil {
		t.Fatal(err)
	}
	store := letters{pool}
	x := Start(Options{Path: filepath.Join(dir, "history.db"), Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler), Group: 2})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = pool.Close()
	})
	return store, x
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(testkit.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			t.Fatalf("it did not come that %s", what)
		case <-tick.C:
		}
	}
}

// awaitWord waits until the index has the messages that hold a word.
func awaitWord(t *testing.T, x *Index, word string, want ...string) {
	t.Helper()
	query, err := search.Parse(word)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("%q is found in %q", word, want), func() bool {
		found, behind, err := x.Rank(t.Context(), WordQuery{Words: query, Kinds: []search.Kind{search.Message}, Most: 10})
		var ids []string
		for _, hit := range found {
			ids = append(ids, hit.ID)
		}
		slices.Sort(ids)
		return err == nil && behind == 0 && slices.Equal(ids, want)
	})
}

// The goroutine has everything indexed and would not look again by itself.
func TestDamageThatAQuestionMeetsIsMended(t *testing.T) {
	store, x := startLetters(t)
	store.write(t, "m1", "a word")
	x.Committed()
	awaitWord(t, x, "word", "m1")
	damage := damaged(t)
	if err := x.asked(func(sqlitex.Querier) error { return damage }); err == nil {
		t.Error("the question was answered")
	}
	kept := filepath.Join(filepath.Dir(x.path), "archive", "orphaned", "*", "history.db")
	eventually(t, "the damaged index is put away", func() bool {
		found, err := filepath.Glob(kept)
		return err == nil && len(found) == 1
	})
	awaitWord(t, x, "word", "m1")
	// What the store itself lacks is not the index's damage.
	if err := x.asked(func(sqlitex.Querier) error { return ofSource(damage) }); err == nil {
		t.Error("the question was answered")
	}
	if met := x.damage.Load(); met != nil {
		t.Errorf("the index is suspected: %v", *met)
	}
}

// damaged is what SQLite says of a damaged file.
// A broker that ends as soon as its first message is there leaves an index with
// rows, which tells a lost store from one that never was.
func TestSTO_17_WhatCameFirstIsIndexedBeforeTheEnd(t *testing.T) {
	store, x := startLetters(t)
	store.write(t, "m1", "a word")
	x.Committed()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", sqlitex.DSN(x.path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var row int64
	if err := pool.QueryRow("SELECT row FROM search_upto").Scan(&row); err != nil || row != 1 {
		t.Errorf("the index reaches to row %d, %v", row, err)
	}
}

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

func TestPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		size := 1 + r.IntN(300)
		share := r.Float64()
		g, want := trigrams{}, newPositions(size)
		for at := range size {
			if r.Float64() < share {
				g.add(at, "abc")
				want[at/64] |= 1 << (at % 64)
			}
		}
		for trigram, list := range g {
			got := newPositions(size)
			got.add(list.encoded(size))
			if !slices.Equal(got, want) {
				t.Fatalf("trigram %d of %d documents: %v, want %v", trigram, size, got, want)
			}
		}
	}
	long := patternOf(strings.Repeat("abcdefghijklmnopqrstuvwxyz0123456789", 5))
	if len(long.all) == 0 || len(long.all) > 16 {
		t.Errorf("a long piece asks for %d trigrams", len(long.all))
	}
}

func BenchmarkIndexing(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bridge.db")
	x := &Index{path: path, log: slog.New(slog.DiscardHandler), now: time.Now}
	if err := x.open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = x.shut() }()
	n := int64(0)
	for b.Loop() {
		var documents []sourceRow
		for range stepRows {
			n++
			documents = append(documents, sourceRow{cursor: cursor{n, fmt.Sprintf("message-%d", n)}, at: n, text: benchText(n)})
		}
		if err := x.put(sources[2], documents); err != nil {
			b.Fatal(err)
		}
	}
}

// benchText is about 500 characters, different for each n.
func benchText(n int64) string {
	text := ""
	for i := range int64(70) {
		text += fmt.Sprintf("w%d ", (n*31+i*i*17)%(7+i*97))
	}
	return text
}

// TestVER_06_AnIndexThatIsNotOursIsLeftAsItIs: without it the store goes on.
