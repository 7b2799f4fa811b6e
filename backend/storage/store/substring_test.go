package store

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/storage/store/transfer"
)

// openGrouped opens a store whose index makes small groups.
func openGrouped(t testing.TB, path string, group int) *DB {
	t.Helper()
	opts := testOptions()
	opts.Index, opts.group = indexPath(path), group
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

// randomText has few different characters, so that pieces occur often, seldom
// and never.
func randomText(r *rand.Rand) string {
	letters := []rune("ab%_ é✓😀\n")
	text := make([]rune, 1+r.IntN(12))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return string(text)
}

// Whatever is asked, the index answers as reading everything does: before and
// after rows move, while they are new, and when the clock jumps.
func TestSTO_12_TheIndexFindsWhatAScanFinds(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { indexAgainstScan(t, rand.New(rand.NewPCG(seed, 12))) })
	}
}

func indexAgainstScan(t *testing.T, r *rand.Rand) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	archive := filepath.Join(filepath.Dir(path), archiveName)
	db := openGrouped(t, path, 7)
	at, sent := int64(1000), 0
	send := func(n int) {
		for range n {
			sent++
			id := fmt.Sprintf("m%d", sent)
			at += int64(r.IntN(5)) - 1 // sometimes back
			appendAll(t, db, note(id, "alice", randomText(r), at, []string{"bob", "carol", "dan"}[:1+r.IntN(3)]...))
		}
	}
	compare := func(when string) {
		t.Helper()
		for range 50 {
			query, before, limit := randomText(r), int64(0), 1+r.IntN(20)
			if r.IntN(3) == 0 {
				before = 1000 + r.Int64N(max(1, at-1000))
			}
			if r.IntN(2) == 0 {
				query = string([]rune(query)[:1+r.IntN(min(3, len([]rune(query))))])
			}
			want, err := db.scan(t.Context(), query, math.MaxInt64, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(want, func(row mail.HistoryRow) bool { return before != 0 && row.CreatedAt >= before })
			got, err := db.Search(t.Context(), query, before, limit)
			if err != nil {
				t.Fatal(err)
			}
			sameNewest(t, fmt.Sprintf("%s, %q before %d", when, query, before), want, got, limit)
		}
	}
	send(3)
	compare("no group yet")
	send(60)
	indexed(t, db)
	compare("in groups")
	if _, err := db.Expire(t.Context(), ExpireRule{QueuedBefore: 1020, Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	compare("some expired")
	send(20)
	indexed(t, db)
	compare("some expired and more came")
	inStore(t, path, "UPDATE messages SET read_at = created_at")
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, transfer.ArchiveRule{Before: 1040, Now: at}); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	compare("some archived")
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, transfer.ArchiveRule{Before: at + 100, Now: at}); err != nil {
		t.Fatal(err)
	}
	compare("all archived")
	send(30) // into the places that are free again
	compare("places given anew")
	indexed(t, db)
	compare("places given anew, in groups")
	counts, err := transfer.Counts(t.Context(), indexPath(path), true)
	if err != nil || counts["search_groups"] < 2 {
		t.Errorf("%d groups were made, %v", counts["search_groups"], err)
	}
}

// indexed waits until the index has everything.
func indexed(t testing.TB, db *DB) {
	t.Helper()
	wordIDs(t, db, wordQuery(t, "anything"))
}

// sameNewest compares what was found with the newest of what there is: the
// order of messages of one moment is open.
func sameNewest(t testing.TB, what string, want, got []mail.HistoryRow, limit int) {
	t.Helper()
	slices.SortStableFunc(want, func(a, b mail.HistoryRow) int { return int(b.CreatedAt - a.CreatedAt) })
	texts := map[string]string{}
	for _, row := range want {
		texts[row.ID] = fmt.Sprint(row.CreatedAt, row.Body, len(row.Deliveries))
	}
	var times, gotTimes []int64
	for _, row := range want[:min(limit, len(want))] {
		times = append(times, row.CreatedAt)
	}
	seen := map[string]bool{}
	for _, row := range got {
		gotTimes = append(gotTimes, row.CreatedAt)
		if seen[row.ID] || texts[row.ID] != fmt.Sprint(row.CreatedAt, row.Body, len(row.Deliveries)) {
			t.Fatalf("%s: %s is twice, wrong or not whole: %q, %q", what, row.ID, texts[row.ID], fmt.Sprint(row.CreatedAt, row.Body, len(row.Deliveries)))
		}
		seen[row.ID] = true
	}
	slices.SortFunc(gotTimes, func(a, b int64) int { return int(b - a) })
	if diff := cmp.Diff(times, gotTimes); diff != "" {
		t.Fatalf("%s: the times of the hits differ (-scan +index):\n%s", what, diff)
	}
}

// A group whose messages came while the clock went back is read to its end.
func TestSTO_12_TheNewestAreFoundWhereTheClockWentBack(t *testing.T) {
	db := openGrouped(t, filepath.Join(t.TempDir(), "bridge.db"), 200)
	var back [][]bridge.Message
	for n := range 300 {
		back = append(back, note(fmt.Sprintf("m%d", n), "alice", "some text", int64(1000-n), "bob"))
	}
	appendAll(t, db, back...)
	indexed(t, db)
	rows, err := db.Search(t.Context(), "text", 900, 2)
	if diff := cmp.Diff([]string{"m101", "m102"}, ids(rows)); diff != "" || err != nil {
		t.Errorf("found %v, %v", diff, err)
	}
}

// Messages whose archive is away while their group is made are found when it is
// back.
func TestSTO_12_AnArchiveThatWasAwayIsFoundAgain(t *testing.T) {
	path, archive, db := oldMail(t)
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openGrouped(t, path, 1000)
	indexed(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(archive, archive+".away"); err != nil {
		t.Fatal(err)
	}
	db = openGrouped(t, path, 3)
	appendAll(t, db, note("n1", "alice", "text of today", 70_000, "bob"))
	indexed(t, db)
	eventually(t, "a group is made", func() bool {
		counts, err := transfer.Counts(t.Context(), indexPath(path), true)
		return err == nil && counts["search_groups"] > 0
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(archive+".away", archive); err != nil {
		t.Fatal(err)
	}
	db = openGrouped(t, path, 3)
	appendAll(t, db, note("n2", "alice", "text of today", 80_000, "bob"))
	for range 3 { // while it is walked anew, and after
		rows, err := db.Search(t.Context(), "text", 0, 100)
		if len(rows) != 12 || err != nil {
			t.Errorf("%d messages hold the text, want 12: %v", len(rows), err)
		}
		if found := wordIDs(t, db, wordQuery(t, "text")); len(found) != 12 {
			t.Errorf("%d messages hold the word, want 12", len(found))
		}
	}
}
