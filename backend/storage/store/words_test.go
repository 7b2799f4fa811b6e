package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/search"
	"bridge/backend/storage/store/transfer"
	"bridge/backend/testing/testkit"
)

// openIndexed opens a store with its search index beside it.
func openIndexed(t testing.TB, path string) *DB {
	t.Helper()
	opts := testOptions()
	opts.Index = indexPath(path)
	db, err := Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

func indexPath(path string) string { return filepath.Join(filepath.Dir(path), "history.db") }

// wordQuery asks for the words typed, everywhere.
func wordQuery(t testing.TB, typed string) WordQuery {
	t.Helper()
	words, err := search.Parse(typed)
	if err != nil {
		t.Fatal(err)
	}
	return WordQuery{Words: words, Kinds: search.Kinds(), Limit: 100}
}

// wordIDs are the ids of the hits, once the index has everything.
func wordIDs(t testing.TB, db *DB, q WordQuery) []string {
	t.Helper()
	var hits []WordHit
	eventually(t, "the index has everything", func() bool {
		found, behind, err := db.SearchWords(t.Context(), q)
		hits = found
		return err == nil && behind == 0
	})
	found := []string{}
	for _, hit := range hits {
		found = append(found, hit.Message.ID+hit.Decision.ID)
	}
	return found
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		pause, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		<-pause.Done()
		cancel()
	}
}

func decideAt(t testing.TB, db *DB, id, topic, text string, at int64) {
	t.Helper()
	rev := decision.Revision{ID: id, Topic: topic, Text: text, Scope: decision.AllSessions(), Author: bridge.OwnerAddress(), CreatedAt: at}
	if _, _, err := db.RecordDecision(t.Context(), rev, func(decision.Revision) []decision.Notification { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestWordsFindMessagesAndDecisions(t *testing.T) {
	db := openIndexed(t, filepath.Join(t.TempDir(), "bridge.db"))
	appendAll(t, db,
		note("m1", "alice", "Deploy the server tonight", 1000, "bob", "carol"),
		note("m2", "bob", "the café is open; deploy, deploy, deploy", 2000, "alice"),
		note("m3", "bob", "nothing of that", 3000, "alice"),
		note("m4", "bob", "main.go and server_test.go: 100%", 4000, "alice"))
	decideAt(t, db, "d1", "release", "We deploy on Fridays", 2500)
	decideAt(t, db, "d2", "release", "We deploy on Mondays", 5000)
	for _, tt := range []struct {
		typed  string
		change func(*WordQuery)
		want   []string
	}{
		{typed: "DEPLOY", want: []string{"m2", "m1", "d2", "d1"}},
		{typed: "deploy server", want: []string{"m1"}},
		{typed: `"server tonight"`, want: []string{"m1"}},
		{typed: `"tonight server"`, want: []string{}},
		{typed: "cafe", want: []string{"m2"}},
		{typed: "main.go", want: []string{"m4"}},
		{typed: "release mondays", want: []string{"d2"}},
		{typed: "absent", want: []string{}},
		{typed: "NOT OR AND", want: []string{}},
		{typed: "deploy", change: func(q *WordQuery) { q.Kinds = []search.Kind{search.Message} }, want: []string{"m2", "m1"}},
		{typed: "deploy", change: func(q *WordQuery) { q.Kinds = []search.Kind{search.Decision} }, want: []string{"d2", "d1"}},
		{typed: "deploy", change: func(q *WordQuery) { q.Before = 2500 }, want: []string{"m2", "m1"}},
		{typed: "deploy", change: func(q *WordQuery) { q.Limit = 1 }, want: []string{"m2"}},
		{typed: "deploy", change: func(q *WordQuery) {
			q.Fits = func(h WordHit) bool { return h.Kind == search.Message && h.Message.From.ID == "alice" }
			q.Limit = 1
		}, want: []string{"m1"}},
	} {
		q := wordQuery(t, tt.typed)
		if tt.change != nil {
			tt.change(&q)
		}
		if diff := cmp.Diff(tt.want, wordIDs(t, db, q)); diff != "" {
			t.Errorf("%s %+v:\n%s", tt.typed, q, diff)
		}
	}
	hits, _, err := db.SearchWords(t.Context(), wordQuery(t, "tonight"))
	if err != nil || len(hits) != 1 || len(hits[0].Message.Deliveries) != 2 {
		t.Errorf("a hit is not the whole message: %+v, %v", hits, err)
	}
}

// Words that are nearly everywhere do not rank; others beside them do.
func TestCommonWordsGiveTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	inStore(t, path, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO messages SELECT printf('m%%d', i), 'bob', 'alice', 'alice', 'claude', 'bob', 'c', NULL, 0,
			CASE i WHEN 10 THEN 'common rare' WHEN 20 THEN 'common and much more besides what is rare here' ELSE 'common' END, i, NULL FROM n`, 2_000+50))
	appendAll(t, db, note("last", "alice", "common common common", 1_000_000, "bob"))
	q := wordQuery(t, "common")
	q.Limit = 3
	want := []string{"last", fmt.Sprintf("m%d", 2_000+50), fmt.Sprintf("m%d", 2_000+49)}
	if diff := cmp.Diff(want, wordIDs(t, db, q)); diff != "" {
		t.Errorf("common:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m10", "m20"}, wordIDs(t, db, wordQuery(t, "common rare"))); diff != "" {
		t.Errorf("common and rare:\n%s", diff)
	}
	for typed, want := range map[string][]string{`"common common"`: {"last"}, `"common rare"`: {"m10"}, `"rare common"`: {}, `common "is rare"`: {"m20"}} {
		if diff := cmp.Diff(want, wordIDs(t, db, wordQuery(t, typed)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", typed, diff)
		}
	}
	q.Before = 1000
	if diff := cmp.Diff([]string{"m999", "m998", "m997"}, wordIDs(t, db, q)); diff != "" {
		t.Errorf("common, before:\n%s", diff)
	}
}

// What moves to the archive is found once, before, during and after.
func TestSTO_07_ArchivingLosesAndDoublesNoHit(t *testing.T) {
	path, archive, db := oldMail(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openIndexed(t, path)
	want := []string{"m9", "m8", "m7", "m6", "m5", "m4", "m3", "m2", "m1", "m0"}
	q := wordQuery(t, "text")
	if diff := cmp.Diff(want, wordIDs(t, db, q)); diff != "" {
		t.Errorf("before archiving:\n%s", diff)
	}
	interrupted := rule()
	interrupted.Step = func(name string) error {
		if name == "remove messages" {
			return context.Canceled
		}
		return nil
	}
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, interrupted); err == nil {
		t.Fatal("the archiving was not interrupted")
	}
	appendAll(t, db, note("new", "alice", "text after", 50_000, "bob"))
	want = append([]string{"new"}, want...)
	if diff := cmp.Diff(want, wordIDs(t, db, q)); diff != "" {
		t.Errorf("between copy and removal:\n%s", diff)
	}
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, wordIDs(t, db, q)); diff != "" {
		t.Errorf("after archiving:\n%s", diff)
	}
}

// Rows that leave give their places to new ones; these are found too.
func TestTheIndexSeesThatPlacesWereGivenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	appendAll(t, db, note("m1", "alice", "first words", 1000, "bob"), note("m2", "alice", "second words", 2000, "bob"))
	q := wordQuery(t, "words")
	wordIDs(t, db, q)
	if marks, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 10_000, Limit: 10}); err != nil || len(marks) != 2 {
		t.Fatalf("%d expired, %v", len(marks), err)
	}
	appendAll(t, db, note("m3", "alice", "third words", 3000, "bob"))
	eventually(t, "the new message is found", func() bool { return slices.Contains(wordIDs(t, db, q), "m3") })
	if got := wordIDs(t, db, q); len(got) != 3 {
		t.Errorf("hits %v, want three", got)
	}
}

func TestAnIndexThatIsLeftBehindCatchesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	appendAll(t, db, note("m1", "alice", "one word", 1000, "bob"))
	wordIDs(t, db, wordQuery(t, "word"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	plain := openAt(t, path)
	for n := range 200 { // more than a step takes
		appendAll(t, plain, note(fmt.Sprintf("n%d", n), "alice", "word", int64(2000+n), "bob"))
	}
	if _, _, err := plain.SearchWords(t.Context(), wordQuery(t, "word")); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a store without an index says %v", err)
	}
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	db = openIndexed(t, path)
	q := wordQuery(t, "word")
	q.Limit = 1000
	if got := wordIDs(t, db, q); len(got) != 201 {
		t.Errorf("%d hits, want 201", len(got))
	}
	counts, err := transfer.Counts(t.Context(), indexPath(path), true)
	if err != nil || counts["search_documents"] != 201 {
		t.Errorf("%d documents, %v", counts["search_documents"], err)
	}
}

// A damaged index is rebuilt and kept, byte for byte; where its file holds more it
// is left as it is, and the store works on.
func TestADamagedIndex(t *testing.T) {
	junk := func(t *testing.T, path string, at int64) []byte {
		t.Helper()
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteAt(slices.Repeat([]byte{0xa5}, 4096), at); err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	for _, tt := range []struct {
		name    string
		foreign bool
		at      int64 // of the junk: the head, or every page behind it
		anew    bool
	}{
		{"its pages", false, 4096, true},
		{"its pages, beside other tables", true, 4096, false},
		{"STO-18 its head", false, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openIndexed(t, path)
			appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"))
			wordIDs(t, db, wordQuery(t, "word"))
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if tt.foreign {
				inStore(t, indexPath(path), "CREATE TABLE conversation_records (raw BLOB); INSERT INTO conversation_records VALUES ('only here')")
			}
			info, err := os.Stat(indexPath(path))
			if err != nil {
				t.Fatal(err)
			}
			var damaged []byte
			for at := tt.at; at < info.Size() && (at > 0 || damaged == nil); at += 4096 {
				damaged = junk(t, indexPath(path), at)
			}
			db = openIndexed(t, path)
			appendAll(t, db, note("m2", "alice", "another word", 2000, "bob"))
			if tt.anew {
				if got := wordIDs(t, db, wordQuery(t, "word")); len(got) != 2 {
					t.Errorf("found %v after the index was rebuilt", got)
				}
			} else {
				eventually(t, "the search says that it is damaged", func() bool {
					_, _, err := db.SearchWords(t.Context(), wordQuery(t, "word"))
					return bridge.CodeOf(err) == bridge.Storage
				})
			}
			kept := indexPath(path)
			if tt.anew {
				found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "archive", "orphaned", "*", "history.db"))
				if err != nil || len(found) != 1 {
					t.Fatalf("kept %v, %v", found, err)
				}
				kept = found[0]
			}
			if bytes, err := os.ReadFile(kept); err != nil || !slices.Equal(bytes, damaged) {
				t.Errorf("the damaged file is not kept byte for byte: %v", err)
			}
		})
	}
}

// Damage in what is indexed is no damage of the index, which stays.
func TestDamageInTheArchiveIsNotTheIndexes(t *testing.T) {
	path, archive, db := oldMail(t)
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[4096:] {
		data[4096+i] = 0xa5
	}
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db = openIndexed(t, path)
	eventually(t, "what the store has is found", func() bool {
		hits, _, err := db.SearchWords(t.Context(), wordQuery(t, "text"))
		return err == nil && len(hits) == 9
	})
	appendAll(t, db, note("new", "alice", "more text", 60_000, "bob"))
	eventually(t, "the index goes on", func() bool {
		hits, _, err := db.SearchWords(t.Context(), wordQuery(t, "more text"))
		return err == nil && len(hits) == 1
	})
	if kept, err := filepath.Glob(filepath.Join(filepath.Dir(path), "archive", "orphaned", "*")); err != nil || len(kept) != 0 {
		t.Errorf("the index was put away: %v, %v", kept, err)
	}
}

// However often the process dies, the index is behind at most, never wrong.
func TestTheIndexSurvivesSIGKILL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	for range 6 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"=index", helperArgs+"="+path)
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		for range 150 {
			lines.Scan()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	db := openGrouped(t, path, 40)
	q := wordQuery(t, "word")
	q.Limit = 100_000
	found := wordIDs(t, db, q)
	counts, err := transfer.Counts(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != min(counts["messages"], 2_000) {
		t.Errorf("%d of %d messages are found by a word", len(found), counts["messages"])
	}
	rows, err := db.Search(t.Context(), "a word", 0, 100_000)
	if err != nil || len(rows) != counts["messages"] {
		t.Errorf("%d of %d messages are found by a piece of text, %v", len(rows), counts["messages"], err)
	}
	inStore(t, indexPath(path), "INSERT INTO search_words (search_words) VALUES ('integrity-check')")
	if seen, err := transfer.Inspect(t.Context(), indexPath(path), true); err != nil || len(seen.Problems) > 0 {
		t.Errorf("the index: %v, %v", seen.Problems, err)
	}
}

// indexUntilKilled stores messages, each told by a line, beside an index.
func indexUntilKilled(ctx context.Context, path string) error {
	opts := testOptions()
	opts.Index, opts.group = indexPath(path), 40
	db, err := Open(ctx, path, opts)
	if err != nil {
		return err
	}
	defer db.Close()
	for n := 0; ; n++ {
		message := note(fmt.Sprintf("m%d-%d", os.Getpid(), n), "alice", "a word", int64(1000+n), "bob")
		if _, _, err := db.Append(ctx, message); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestVER_06_AnIndexThatIsNotOursIsLeftAsItIs(t *testing.T) {
	for name, script := range map[string]string{
		"a newer file":      "CREATE TABLE other (x); PRAGMA user_version = 3",
		"a newer component": "CREATE TABLE bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL); INSERT INTO bridge_components VALUES ('search', 2); PRAGMA user_version = 2",
		"a message store":   "CREATE TABLE messages (id TEXT)",
	} {
		t.Run("VER-06 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			inStore(t, indexPath(path), script)
			db := openIndexed(t, path)
			eventually(t, "the index is refused", func() bool {
				_, _, err := db.SearchWords(t.Context(), wordQuery(t, "text"))
				return bridge.CodeOf(err) == bridge.Unsupported
			})
			appendAll(t, db, note("m1", "alice", "text", 1, "bob"))
			if rows, err := db.Recent(t.Context(), 1); err != nil || len(rows) != 1 {
				t.Errorf("Recent = %v, %v", rows, err)
			}
		})
	}
}
