package maintain

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/search"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// indexed has the home's store keep its search index until it has everything,
// and returns how many messages hold the word.
func indexed(t *testing.T, c Maintenance, word string) int {
	t.Helper()
	db, err := store.Open(context.Background(), c.Home.DB(), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Index: c.Home.History()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	words, err := search.Parse(word)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		hits, behind, err := db.SearchWords(t.Context(), store.WordQuery{Words: words, Kinds: search.Kinds(), Limit: 100})
		if err == nil && behind == 0 {
			return len(hits)
		}
	}
	t.Fatal("the index never had everything")
	return 0
}

// The doctor knows the search index; a damaged one that is nothing else is put
// away by a fix and rebuilt.
func TestSTO_01_STO_06_TheDoctorKnowsTheSearchIndex(t *testing.T) {
	c := newHome(t)
	there := indexed(t, c, "message")
	if there == 0 {
		t.Fatal("the home has no messages")
	}
	sound := findings(report(t, c))
	if has(sound, "index-damaged history.db") || has(sound, "index-behind history.db") || has(sound, "unknown-file history.db") {
		t.Errorf("a sound index gives %v", sound)
	}
	makeDatabase(t, c, "bridge.db", fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO messages SELECT printf('far-%%d', i), 'bob', 'alice', 'alice', 'claude', 'bob', 'c', NULL, 0, 'message', 5000, NULL FROM n`, 10_000))
	if got := findings(report(t, c)); !has(got, "index-behind history.db") {
		t.Errorf("an index that is far behind gives %v", got)
	}
	makeDatabase(t, c, "bridge.db", "DELETE FROM messages WHERE id LIKE 'far-%'")
	var damaged []byte
	spoil(t, c, "history.db", func(data []byte) []byte {
		for i := range data[4096:] {
			data[4096+i] = 0xa5
		}
		damaged = data
		return data
	})
	r := report(t, c)
	if !has(findings(r), "index-damaged history.db") || !r.OK {
		t.Errorf("a damaged index gives %v", findings(r))
	}
	fixed, err := c.Archive().Fix(t.Context())
	moved := fixed.Moved
	if err != nil || len(moved) == 0 {
		t.Fatalf("moved %v, %v", moved, err)
	}
	kept, err := os.ReadFile(filepath.Join(filepath.Dir(moved[0].To), "history.db"))
	if err != nil || !cmp.Equal(kept, damaged) {
		t.Errorf("the damaged index is not kept byte for byte: %v", err)
	}
	if again := indexed(t, c, "message"); again != there {
		t.Errorf("the new index finds %d messages, the old one found %d", again, there)
	}
}

// TestSTO_18_GarbageInPlaceOfTheSearchIndexIsMended: it is only an index, and what
// lay there is kept.
func TestSTO_18_GarbageInPlaceOfTheSearchIndexIsMended(t *testing.T) {
	for name, garbage := range map[string]string{"garbage": strings.Repeat("garbage ", 1000), "a few bytes": "x", "nothing": ""} {
		t.Run("STO-18 "+name, func(t *testing.T) {
			c := newHome(t)
			there := indexed(t, c, "message")
			write(t, c.Home.Dir(), "history.db", garbage)
			r := report(t, c)
			if !r.OK || !has(findings(r), "index-damaged history.db") {
				t.Fatalf("the doctor says %v", findings(r))
			}
			mustBackup(t, c)
			fixed, err := c.Archive().Fix(t.Context())
			moved := fixed.Moved
			if err != nil || len(moved) != 1 {
				t.Fatalf("moved %v, %v", moved, err)
			}
			if kept, err := os.ReadFile(moved[0].To); err != nil || string(kept) != garbage {
				t.Errorf("kept %q, %v", kept, err)
			}
			if r := report(t, c); len(r.Findings) > 0 {
				t.Errorf("after the fix: %v", findings(r))
			}
			if again := indexed(t, c, "message"); again != there {
				t.Errorf("the new index finds %d messages, the old one found %d", again, there)
			}
		})
	}
}

// TestSTO_18_APartOfTheIndexThatIsGoneIsSeen: each of its tables in turn.
func TestSTO_18_APartOfTheIndexThatIsGoneIsSeen(t *testing.T) {
	maintenance := newHome(t)
	there := indexed(t, maintenance, "message")
	for script := range strings.SplitSeq("DROP TABLE bridge_components|DROP TABLE search_upto|DROP TABLE search_documents|DROP TABLE search_groups|DROP TABLE search_grams|DROP TABLE search_words|DROP TABLE search_words_data|"+
		"DELETE FROM bridge_components|DELETE FROM search_documents|DELETE FROM search_words_docsize|UPDATE bridge_components SET version = 'x'|"+
		"INSERT INTO search_groups VALUES (1, 1, 1, 1, 1, '{')|ALTER TABLE search_documents RENAME at TO since", "|") {
		t.Run("STO-18 "+script, func(t *testing.T) {
			c := copied(t, maintenance)
			makeDatabase(t, c, "history.db", script)
			if r := report(t, c); !r.OK || !has(findings(r), "index-damaged history.db") {
				t.Errorf("the doctor says %v", r.Findings)
			}
			if again := indexed(t, c, "message"); again != there {
				t.Errorf("after a start %d messages are found, before %d", again, there)
			}
			if r := report(t, c); len(r.Findings) > 0 {
				t.Errorf("after a start: %v", r.Findings)
			}
		})
	}
}

func TestSTO_04_ADamagedSearchIndexIsNoReasonToHaveNoSnapshot(t *testing.T) {
	c := newHome(t)
	indexed(t, c, "message")
	spoil(t, c, "history.db", func(data []byte) []byte {
		for i := 4096; i < len(data); i++ { // the first page says what the file holds
			data[i] = 0x5a
		}
		return data
	})
	made := mustBackup(t, c)
	if manifestOf(t, made.Path).Has(inventory.History) || len(made.Omitted) != 1 || made.Omitted[0] != inventory.History {
		t.Errorf("the snapshot omits %v", made.Omitted)
	}
	if _, err := os.Lstat(inventory.JoinHome(made.Path, inventory.History)); !inventory.IsGone(err) {
		t.Errorf("half a copy is in the snapshot: %v", err)
	}
	if _, err := c.Restores().Test(t.Context(), made.Path); err != nil {
		t.Error(err)
	}
}

func TestSTO_01_ALostArchiveIsFound(t *testing.T) {
	c := newHome(t)
	onStore(t, c, "UPDATE messages SET read_at = 2000")
	c.ArchiveAge = time.Hour
	if done, err := c.Archive().Messages(t.Context()); err != nil || done.Messages == 0 {
		t.Fatalf("archived %+v, %v", done, err)
	}
	indexed(t, c, "message")
	if found := findings(report(t, c)); has(found, "database-missing archive.db") {
		t.Errorf("the archive is there: %v", found)
	}
	remove(t, c, "archive.db")
	if found := findings(report(t, c)); !has(found, "database-missing archive.db") {
		t.Errorf("the archive is gone: %v", found)
	}
}
