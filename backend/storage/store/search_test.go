package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/storage/store/transfer"
)

func TestSTO_12_SearchFindsLiterallyAcrossStoreAndArchive(t *testing.T) {
	path, archive, db := oldMail(t) // m0 to m9, each to bob and carol
	appendAll(t, db, note("x1", "alice", "all of 100%", 20_000, "bob", "carol"))
	appendAll(t, db, note("x2", "alice", "a_b ✓", 21_000, "bob"))
	appendAll(t, db, note("x3", "alice", "aXb", 22_000, "bob"))
	everything, err := db.Recent(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for _, tt := range []struct {
			query  string
			before int64
			limit  int
			want   []string
		}{
			{"%", 0, 10, []string{"x1"}},
			{"_", 0, 10, []string{"x2"}},
			{"✓", 0, 10, []string{"x2"}},
			{"A_B", 0, 10, []string{}},
			{"b", 21_000, 10, []string{}},
			{"a", 22_000, 1, []string{"x2"}},
			{"", 0, 100, ids(everything)},
			{"", 22_000, 1, []string{"x2"}},
		} {
			rows, err := db.Search(t.Context(), tt.query, tt.before, tt.limit)
			if diff := cmp.Diff(tt.want, ids(rows)); diff != "" || err != nil {
				t.Errorf("%s, Search(%q, %d, %d): %v\n%s", when, tt.query, tt.before, tt.limit, err, diff)
			}
		}
		for _, row := range everything {
			rows, err := db.Search(t.Context(), row.Body, row.CreatedAt+1, 1000)
			if err != nil || len(rows) == 0 {
				t.Fatalf("%s, %s is not found by its words: %v", when, row.ID, err)
			}
			found := false
			for _, historyRow := range rows {
				found = found || historyRow.ID == row.ID && len(historyRow.Deliveries) == len(row.Deliveries)
			}
			if !found {
				t.Errorf("%s, %s is not found whole", when, row.ID)
			}
		}
	}
	check("before archiving")
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	check("after archiving")
}

func BenchmarkSearch(b *testing.B) {
	db := openTest(b)
	for n := range 200 {
		recipients := make([]string, 50)
		for i := range recipients {
			recipients[i] = fmt.Sprintf("peer-%d", i)
		}
		appendAll(b, db, note(fmt.Sprintf("m%d", n), "alice", "words of a message that is not long", int64(n), recipients...))
	}
	for b.Loop() {
		if rows, err := db.Search(b.Context(), "nowhere", 0, 100); err != nil || len(rows) > 0 {
			b.Fatal(rows, err)
		}
	}
}
