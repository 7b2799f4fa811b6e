package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/transfer"
)

// oldMail makes a store with messages m0 to m9 at times 0 to 9000: the even ones
// were read; all of the first six before 6000 are old.
func oldMail(t *testing.T) (path, archive string, db *DB) {
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

func rule() transfer.ArchiveRule { return transfer.ArchiveRule{Before: 6000, Now: 99_000} }

func primaryRows(t *testing.T, path string) map[string]int {
	t.Helper()
	counts, err := transfer.Counts(context.Background(), path, true)
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
	for _, delivery := range list {
		byRecipient[delivery.Recipient] = delivery
	}
	return byRecipient
})

func TestDEC_09_AMessageInTheArchiveIsAKnownSource(t *testing.T) {
	path, archive, db := oldMail(t)
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	rev := revision("d1", "topic", "x", 1, decision.AllSessions())
	rev.SourceMessageID = ref("m0") // of bob and of carol, and both copies moved
	if got := decide(t, db, rev); !cmp.Equal(got.SourceMessageID, ref("m0")) {
		t.Errorf("the source is kept as %v", got.SourceMessageID)
	}
}

func TestMSG_04_TheSameIDIsKnownInArchiveDB(t *testing.T) {
	path, archive, db := oldMail(t)
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	again := func(id, body string) ([]string, error) {
		rows, err := db.SentBefore(t.Context(), note(id, "alice", body, 77_000, "bob")[0])
		var recipients []string
		for _, row := range rows {
			recipients = append(recipients, row.Recipient)
		}
		slices.Sort(recipients)
		return recipients, err
	}
	for id, body := range map[string]string{"m0": "text 0", "m3": "text 3", "m4": "text 4", "m9": "text 9"} { // all left; none; bob's left; new
		if to, err := again(id, body); err != nil || !slices.Equal(to, []string{"bob", "carol"}) {
			t.Errorf("%s was sent to %v, %v; want bob and carol", id, to, err)
		}
	}
	if to, err := again("m99", "text 0"); err != nil || len(to) > 0 {
		t.Errorf("a new id was sent to %v, %v", to, err)
	}
	for _, id := range []string{"m0", "m9"} {
		if _, err := again(id, "another text"); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("%s with another text: %v", id, err)
		}
	}
}

func TestMSG_04_AnUnreadableArchiveMayHoldTheID(t *testing.T) {
	for name, damage := range map[string]func(archive string){
		"its pages":   func(archive string) { overwrite(t, archive, 0, 1<<20) },
		"a newer one": func(archive string) { inStore(t, archive, "PRAGMA user_version = 99") },
	} {
		path, archive, db := oldMail(t)
		if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil {
			t.Fatal(err)
		}
		damage(archive)
		if _, err := db.SentBefore(t.Context(), note("m0", "alice", "text 0", 1, "bob")[0]); bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
		if rows, err := db.SentBefore(t.Context(), note("m9", "alice", "text 9", 1, "bob")[0]); err != nil || len(rows) != 2 {
			t.Errorf("%s: what the store has is answered by %v, %v", name, rows, err)
		}
	}
}

func TestSTO_07_OldMessagesMoveAndHistoryStaysTheSame(t *testing.T) {
	path, archive, db := oldMail(t)
	before := histories(t, db.Reader)
	moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()) // beside the live writer
	if err != nil || moved != 5 {
		t.Fatalf("moved %d, %v: want m0, m2, m4 of bob and m0, m1 of carol", moved, err)
	}
	if diff := cmp.Diff(map[string]int{"messages": 15, "archived_messages": 0}, primaryRows(t, path)); diff != "" {
		t.Error(diff)
	}
	counts, err := transfer.Counts(t.Context(), archive, false)
	if err != nil || counts["archived_messages"] != 5 {
		t.Errorf("the archive: %v, %v", counts, err)
	}
	if diff := cmp.Diff(before, histories(t, db.Reader), sameDeliveries); diff != "" {
		t.Errorf("STO-15: the history differs:\n%s", diff)
	}
	if again, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || again != 0 {
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
		path, archive, db := oldMail(t)
		before := histories(t, db.Reader)
		step := 0
		interrupted := rule()
		interrupted.Step = func(string) error {
			if step++; step == n {
				return stop
			}
			return nil
		}
		_, err := transfer.ArchiveMessages(t.Context(), path, archive, interrupted)
		if diff := cmp.Diff(before, histories(t, db.Reader), sameDeliveries); diff != "" {
			t.Errorf("step %d: the history differs:\n%s", n, diff)
		}
		if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil {
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
	path, archive, db := oldMail(t)
	defer db.Close()
	makeArchive(t, archive)
	pool, err := sql.Open("sqlite", sqlitex.DSN(archive))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec("INSERT INTO archived_messages (id, recipient, body) VALUES ('m2', 'bob', 'not the same')"); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("ArchiveMessages = %v", err)
	}
	row, err := db.Find(t.Context(), "m2")
	if err != nil || row.Body != "text 2" || primaryRows(t, path)["messages"] != 18 {
		t.Errorf("the primary copy: %+v, %v, %v", row, primaryRows(t, path), err)
	}
}

func TestSTO_07_UnreadMailAndWhatIsYoungStays(t *testing.T) {
	path, archive, db := oldMail(t)
	defer db.Close()
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil {
		t.Fatal(err)
	}
	unread, err := db.Unread(t.Context(), "bob", 100, nil)
	if err != nil || len(unread) != 5 {
		t.Errorf("bob has %d unread, %v", len(unread), err)
	}
	if unread, err = db.Unread(t.Context(), "carol", 100, nil); err != nil || len(unread) != 8 {
		t.Errorf("carol has %d unread, %v", len(unread), err)
	}
}

// TestSTO_07_WhatChangedAfterItWasCopiedStays: only what the archive has exactly
// leaves the store.
func TestSTO_07_WhatChangedAfterItWasCopiedStays(t *testing.T) {
	path, archive, db := oldMail(t)
	mustClose(t, db)
	changing := rule()
	changing.Step = func(name string) error {
		if name == "remove messages" {
			inStore(t, path, "UPDATE messages SET body = 'other' WHERE id = 'm4' AND recipient = 'bob'")
		}
		return nil
	}
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, changing); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("ArchiveMessages = %v", err)
	}
	found, err := openAt(t, path).Find(t.Context(), "m4")
	if err != nil || found.Body != "other" {
		t.Errorf("m4 = %+v, %v", found, err)
	}
}

func TestVER_06_AnOlderStoreIsNotArchived(t *testing.T) {
	path, archive, db := oldMail(t)
	mustClose(t, db)
	inStore(t, path, "PRAGMA user_version = 8")
	before := primaryRows(t, path)
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("ArchiveMessages = %v", err)
	}
	if diff := cmp.Diff(before, primaryRows(t, path)); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
}

func TestVER_06_ANewerOrForeignArchiveIsRefused(t *testing.T) {
	for script, name := range map[string]string{
		"CREATE TABLE archived_messages (id); PRAGMA user_version = 2": "newer", "CREATE TABLE recipes (name)": "foreign",
	} {
		path, archive, db := oldMail(t)
		pool, err := sql.Open("sqlite", sqlitex.DSN(archive))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(script); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(pool.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
		before := listing(t, filepath.Dir(path))[archiveName]
		if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("%s: ArchiveMessages = %v", name, err)
		}
		if after := listing(t, filepath.Dir(path))[archiveName]; name == "newer" && before[:10] != after[:10] {
			t.Errorf("%s: the file changed: %s, %s", name, before, after)
		}
	}
}

// A damaged archive takes nothing from what the store has; the doctor names it.
func TestSTO_15_WithADamagedArchiveHistoryIsAnsweredFromTheStore(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, archive string){
		"no database": func(t *testing.T, archive string) { overwrite(t, archive, 0, 8192) },
		"its pages":   func(t *testing.T, archive string) { overwrite(t, archive, 4096, 1<<20) },
		"a newer one": func(t *testing.T, archive string) { inStore(t, archive, "PRAGMA user_version = 99") },
		"a folder": func(t *testing.T, archive string) {
			if err := errors.Join(os.Remove(archive), os.Mkdir(archive, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, archive, db := oldMail(t)
			if _, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, archive)
			opts := testOptions()
			opts.Index = indexPath(path)
			db, err := Open(t.Context(), path, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, db)
			// Of the messages before 6000 the read ones and the expired ones had left.
			want := []string{"m9", "m8", "m7", "m6", "m5", "m4", "m3", "m2", "m1"}
			for what, ask := range map[string]func() ([]mail.HistoryRow, error){
				"Recent":       func() ([]mail.HistoryRow, error) { return db.Recent(t.Context(), 100) },
				"Search":       func() ([]mail.HistoryRow, error) { return db.Search(t.Context(), "text", 0, 100) },
				"Search all":   func() ([]mail.HistoryRow, error) { return db.Search(t.Context(), "", 0, 100) },
				"Conversation": func() ([]mail.HistoryRow, error) { return db.Conversation(t.Context(), "alice", 0, 100) },
			} {
				rows, err := ask()
				if diff := cmp.Diff(want, ids(rows)); diff != "" || err != nil {
					t.Errorf("%s: %v\n%s", what, err, diff)
				}
			}
			if row, err := db.Find(t.Context(), "m9"); err != nil || len(row.Deliveries) != 2 {
				t.Errorf("Find(m9) = %+v, %v", row, err)
			}
			if _, err := db.Find(t.Context(), "m0"); bridge.CodeOf(err) != bridge.NotFound {
				t.Errorf("Find(m0) = %v", err)
			}
			eventually(t, "words are found", func() bool {
				hits, _, err := db.SearchWords(t.Context(), wordQuery(t, "text"))
				return err == nil && len(hits) >= len(want)
			})
		})
	}
}

// overwrite puts junk into the file from a place on, up to its end or length.
func overwrite(t *testing.T, path string, from, length int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < min(len(data), from+length); i++ {
		data[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The broker moves what expires in its own time, also what is just being archived.
func TestSTO_07_WhatTheBrokerMovesMeanwhileIsNoConflict(t *testing.T) {
	path, archive, db := oldMail(t)
	before := histories(t, db.Reader)["recent"]
	r := rule()
	r.Step = func(name string) error {
		if name != "remove messages" {
			return nil
		}
		_, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 2500, Live: []string{"bob"}, Limit: 100})
		return err
	}
	moved, err := transfer.ArchiveMessages(t.Context(), path, archive, r)
	if err != nil || moved != 3 {
		t.Fatalf("moved %d, %v: want m4 of bob and m0, m1 of carol", moved, err)
	}
	r.Step = nil
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, r); err != nil {
		t.Errorf("the next time: %v", err)
	}
	if rows := primaryRows(t, path); rows["archived_messages"] != 0 {
		t.Errorf("left in the store: %v", rows)
	}
	after := histories(t, db.Reader)["recent"]
	for i, row := range after {
		if row.ID != before[i].ID || len(row.Deliveries) != 2 {
			t.Errorf("%s has %d deliveries", row.ID, len(row.Deliveries))
		}
	}
}
