package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/mail"

	"github.com/google/go-cmp/cmp"
)

// oldMail makes a store with messages m0 to m9 at times 0 to 9000: the even ones
// were read; all of the first six before 6000 are old.
func oldMail(t *testing.T) (path, cold string, db *DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bridge.db")
	db = openAt(t, path)
	for n := range 10 {
		appendAll(t, db, note(fmt.Sprintf("m%d", n), "alice", fmt.Sprintf("text %d", n), int64(1+n*1000), "bob", "carol"))
	}
	for n := 0; n < 10; n += 2 {
		mark := mail.Mark{MessageID: fmt.Sprintf("m%d", n), Recipient: "bob", At: int64(10 + n*1000), Evidence: "a hook"}
		if err := db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{mark}); err != nil {
			t.Fatal(err)
		}
	}
	// What expired unread is in archived_messages: carol's m0 and m1.
	if _, err := db.Expire(t.Context(), ExpireRule{QueuedBefore: 1500, Live: []string{"bob"}, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(filepath.Dir(path), archiveName), db
}

func rule() ArchiveRule { return ArchiveRule{Before: 6000, Now: 99_000} }

func primaryRows(t *testing.T, path string) map[string]int {
	t.Helper()
	counts, err := Counts(context.Background(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]int{"messages": counts["messages"], "archived_messages": counts["archived_messages"]}
}

func histories(t *testing.T, r *Reader) map[string][]mail.HistoryRow {
	t.Helper()
	all := map[string][]mail.HistoryRow{}
	var err error
	if all["recent"], err = r.Recent(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if all["newest three"], err = r.Recent(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"alice", "bob", "carol"} {
		if all[peer], err = r.Conversation(t.Context(), peer, 0, 100); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		id := fmt.Sprintf("m%d", n)
		row, err := r.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all["find "+id] = []mail.HistoryRow{row}
	}
	return all
}

// sameDeliveries compares deliveries whatever their order.
var sameDeliveries = cmp.Transformer("ByRecipient", func(list []mail.Delivery) map[string]mail.Delivery {
	byRecipient := map[string]mail.Delivery{}
	for _, one := range list {
		byRecipient[one.Recipient] = one
	}
	return byRecipient
})

func TestSTO_07_OldMessagesMoveAndHistoryStaysTheSame(t *testing.T) {
	path, cold, db := oldMail(t)
	before := histories(t, db.Reader)
	moved, err := ArchiveMessages(t.Context(), path, cold, rule()) // beside the live writer
	if err != nil || moved != 5 {
		t.Fatalf("moved %d, %v: want m0, m2, m4 of bob and m0, m1 of carol", moved, err)
	}
	if diff := cmp.Diff(map[string]int{"messages": 15, "archived_messages": 0}, primaryRows(t, path)); diff != "" {
		t.Error(diff)
	}
	counts, err := Counts(t.Context(), cold, false)
	if err != nil || counts["archived_messages"] != 5 {
		t.Errorf("the archive: %v, %v", counts, err)
	}
	if diff := cmp.Diff(before, histories(t, db.Reader), sameDeliveries); diff != "" {
		t.Errorf("STO-15: the history differs:\n%s", diff)
	}
	if again, err := ArchiveMessages(t.Context(), path, cold, rule()); err != nil || again != 0 {
		t.Errorf("again: %d, %v", again, err)
	}
	appendAll(t, db, note("later", "alice", "more", 20_000, "bob"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if row, err := reader.Find(t.Context(), "m0"); err != nil || len(row.Deliveries) != 2 {
		t.Errorf("without a broker: %+v, %v", row, err)
	}
}

func TestSTO_07_AnInterruptionLeavesDuplicatesAndNeverNeither(t *testing.T) {
	stop := errors.New("stopped")
	for n := 1; ; n++ {
		path, cold, db := oldMail(t)
		before := histories(t, db.Reader)
		step := 0
		interrupted := rule()
		interrupted.Step = func(string) error {
			if step++; step == n {
				return stop
			}
			return nil
		}
		_, err := ArchiveMessages(t.Context(), path, cold, interrupted)
		if diff := cmp.Diff(before, histories(t, db.Reader), sameDeliveries); diff != "" {
			t.Errorf("step %d: the history differs:\n%s", n, diff)
		}
		if _, err := ArchiveMessages(t.Context(), path, cold, rule()); err != nil {
			t.Errorf("step %d: again: %v", n, err)
		}
		if diff := cmp.Diff(before, histories(t, db.Reader), sameDeliveries); diff != "" {
			t.Errorf("step %d, again: the history differs:\n%s", n, diff)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			if n < 5 {
				t.Errorf("only %d steps", n-1)
			}
			return
		}
	}
}

func TestSTO_07_AConflictingIdentityStopsTheArchive(t *testing.T) {
	path, cold, db := oldMail(t)
	defer db.Close()
	if err := prepareArchive(t.Context(), cold); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", dsn(cold))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec("INSERT INTO archived_messages (id, recipient, body) VALUES ('m2', 'bob', 'not the same')"); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ArchiveMessages(t.Context(), path, cold, rule()); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("ArchiveMessages = %v", err)
	}
	row, err := db.Find(t.Context(), "m2")
	if err != nil || row.Body != "text 2" || primaryRows(t, path)["messages"] != 18 {
		t.Errorf("the primary copy: %+v, %v, %v", row, primaryRows(t, path), err)
	}
}

func TestSTO_07_UnreadMailAndWhatIsYoungStays(t *testing.T) {
	path, cold, db := oldMail(t)
	defer db.Close()
	if _, err := ArchiveMessages(t.Context(), path, cold, rule()); err != nil {
		t.Fatal(err)
	}
	unread, err := db.Unread(t.Context(), "bob", 100)
	if err != nil || len(unread) != 5 {
		t.Errorf("bob has %d unread, %v", len(unread), err)
	}
	if unread, err = db.Unread(t.Context(), "carol", 100); err != nil || len(unread) != 8 {
		t.Errorf("carol has %d unread, %v", len(unread), err)
	}
}

func TestVER_06_ANewerOrForeignArchiveIsRefused(t *testing.T) {
	for script, name := range map[string]string{
		"CREATE TABLE archived_messages (id); PRAGMA user_version = 2": "newer", "CREATE TABLE recipes (name)": "foreign",
	} {
		path, cold, db := oldMail(t)
		pool, err := sql.Open("sqlite", dsn(cold))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(script); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(pool.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
		before := filesOf(t, filepath.Dir(path))[archiveName]
		if _, err := ArchiveMessages(t.Context(), path, cold, rule()); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("%s: ArchiveMessages = %v", name, err)
		}
		if after := filesOf(t, filepath.Dir(path))[archiveName]; name == "newer" && before[:10] != after[:10] {
			t.Errorf("%s: the file changed: %s, %s", name, before, after)
		}
	}
}
