package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

// lost is a store of which a copy was made before it lost rows.
type lost struct {
	path, archive, copied string
	before                map[string][]mail.HistoryRow
	unread                map[string][]mail.Delivery
}

func (l lost) merge() transfer.Merge {
	return transfer.Merge{Store: l.path, Archive: l.archive, From: l.copied}
}

func unreadOf(t *testing.T, r *Reader) map[string][]mail.Delivery {
	t.Helper()
	unread := map[string][]mail.Delivery{}
	for _, peer := range []string{"alice", "bob", "carol", "dora"} {
		var err error
		if unread[peer], err = r.Unread(t.Context(), peer, 1000, nil); err != nil {
			t.Fatal(err)
		}
	}
	return unread
}

// loseRows makes a store with mail in all of its states and both archives, a
// reply and a job's route, copies it and then runs the script on it.
func loseRows(t *testing.T, script string) lost {
	t.Helper()
	path, archive, db := oldMail(t)
	reply := note("r1", "bob", "an answer", 9500, "alice")
	reply[0].ReplyTo = "m8"
	appendAll(t, db, reply)
	if _, err := transfer.ArchiveMessages(t.Context(), path, archive, transfer.ArchiveRule{Before: 3000, Now: 99_000}); err != nil {
		t.Fatal(err)
	}
	l := lost{path: path, archive: archive, copied: filepath.Join(t.TempDir(), "messages.db"), before: histories(t, db.Reader), unread: unreadOf(t, db.Reader)}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "INSERT INTO job_delivery_routes (id, recipient) VALUES ('j1', 'alice'), ('j2', 'bob')")
	_, err := transfer.CopyMessages(t.Context(), transfer.ScopedCopy{Store: path, Archive: archive, To: l.copied, Pause: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	inStore(t, path, script)
	return l
}

var losses = map[string]string{
	"nothing":             "",
	"every second row":    "DELETE FROM messages WHERE rowid % 2; DELETE FROM archived_messages WHERE rowid % 2; DELETE FROM job_delivery_routes WHERE id = 'j1'",
	"the newest":          "DELETE FROM messages WHERE created_at > 4000; DELETE FROM message_peers WHERE created_at > 4000; DELETE FROM delivery_stages",
	"the oldest":          "DELETE FROM messages WHERE created_at < 7000; DELETE FROM archived_messages",
	"everything":          "DELETE FROM messages; DELETE FROM archived_messages; DELETE FROM message_peers; DELETE FROM message_peers_upto; DELETE FROM delivery_stages; DELETE FROM job_delivery_routes",
	"all but the archive": "DELETE FROM messages; DELETE FROM message_peers; DELETE FROM delivery_stages",
}

// told leaves out by whose word a stage was reached: a copy has only times.
var told = cmp.Comparer(func(a, b mail.Fact) bool { return a.At == b.At })

func TestSTO_16_AMergeBringsBackWhatIsMissingInItsOrder(t *testing.T) {
	for name, script := range losses {
		t.Run(name, func(t *testing.T) {
			l := loseRows(t, script)
			would, err := transfer.PreviewMerge(t.Context(), l.merge())
			if err != nil {
				t.Fatal(err)
			}
			done, err := transfer.MergeMessages(t.Context(), l.merge())
			if err != nil || done != would || (done.Missing() == 0) != (name == "nothing") || done.Unread != 0 {
				t.Fatalf("MergeMessages = %+v, %v; PreviewMerge = %+v", done, err, would)
			}
			db := openAt(t, l.path)
			// Expiry and its words are of the store alone, and it may have lost them.
			if diff := cmp.Diff(l.before, histories(t, db.Reader), told, sameDeliveries); diff != "" {
				t.Errorf("the history differs (-before +merged):\n%.2000s", diff)
			}
			if diff := cmp.Diff(l.unread, unreadOf(t, db.Reader), told); diff != "" {
				t.Errorf("unread mail differs:\n%.2000s", diff)
			}
			again, err := transfer.PreviewMerge(t.Context(), l.merge())
			if err != nil || again.Missing() != 0 || again.Present != done.Present+done.Missing() {
				t.Errorf("a second merge: %+v, %v", again, err)
			}
		})
	}
}

func TestSTO_16_MergedMailStandsBeforeWhatCameSince(t *testing.T) {
	l := loseRows(t, "DELETE FROM messages WHERE created_at > 6500")
	db := openAt(t, l.path)
	appendAll(t, db, note("later", "alice", "after the loss", 20_000, "bob"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, l.path)
	appendAll(t, db, note("latest", "alice", "after the merge", 21_000, "bob"))
	want := []string{"latest", "later", "r1", "m9", "m8", "m7", "m6", "m5", "m4", "m3", "m2", "m1", "m0"}
	ids := func(rows []mail.HistoryRow, err error) (ids []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	if diff := cmp.Diff(want, ids(db.Recent(t.Context(), 100))); diff != "" {
		t.Errorf("Recent:\n%s", diff)
	}
	if diff := cmp.Diff(want, ids(db.Search(t.Context(), "", 0, 100))); diff != "" {
		t.Errorf("Search:\n%s", diff)
	}
	if diff := cmp.Diff(want[2:5], ids(db.Search(t.Context(), "", 20_000, 3))); diff != "" {
		t.Errorf("a page of Search:\n%s", diff)
	}
	if diff := cmp.Diff(want, ids(db.Conversation(t.Context(), "alice", 0, 100))); diff != "" {
		t.Errorf("Conversation:\n%s", diff)
	}
	t.Run("STO-07 the archive takes merged rows too", func(t *testing.T) {
		if _, err := transfer.ArchiveMessages(t.Context(), l.path, l.archive, transfer.ArchiveRule{Before: 30_000, Now: 99_000}); err != nil {
			t.Fatal(err)
		}
		if found, err := db.Find(t.Context(), "m8"); err != nil || len(found.Deliveries) != 2 || !found.Deliveries[0].Answered.Happened() && !found.Deliveries[1].Answered.Happened() {
			t.Errorf("m8 = %+v, %v", found, err)
		}
		var left int
		pool, err := sql.Open("sqlite", sqlitex.WriterDSN(l.path))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.QueryRow("SELECT count(*) FROM messages WHERE rowid < 0 AND read_at IS NOT NULL").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d merged rows were passed over: %v", left, err)
		}
	})
}

// TestSTO_16_MailIsDeliveredOnce: what somebody has had never comes again.
func TestSTO_16_MailIsDeliveredOnce(t *testing.T) {
	tests := []struct {
		name, since string
		waiting     []string // bob's unread messages after the merge
		dora        []string
		back        int // rows that the merge brings
	}{
		{"unread mail waits again", "DELETE FROM messages WHERE recipient = 'bob'", []string{"m1", "m3", "m5", "m7", "m9"}, nil, 8},
		{"what was read in the copy stays read", "DELETE FROM messages WHERE id = 'm8'", []string{"m1", "m3", "m5", "m7", "m9"}, nil, 2},
		{"what was read here stays read", "UPDATE messages SET read_at = 77 WHERE id = 'm3'", []string{"m1", "m5", "m7", "m9"}, nil, 0},
		{"what the stages say was read", `INSERT INTO delivery_stages (message_id, recipient, consumed_at) VALUES ('m5', 'bob', 78); DELETE FROM messages WHERE id = 'm5'`, []string{"m1", "m3", "m7", "m9"}, nil, 2},
		{"what went to another recipient", "UPDATE messages SET recipient = 'dora' WHERE id = 'm7' AND recipient = 'bob'", []string{"m1", "m3", "m5", "m9"}, []string{"m7"}, 0},
		{"what went to another recipient and expired there", `UPDATE messages SET recipient = 'dora' WHERE id = 'm7' AND recipient = 'bob';
			INSERT INTO archived_messages SELECT *, 'ttl', 90 FROM messages WHERE recipient = 'dora'; DELETE FROM messages WHERE recipient = 'dora'`, []string{"m1", "m3", "m5", "m9"}, nil, 0},
		{"what was read and is another's too", "UPDATE messages SET recipient = 'dora' WHERE id = 'm8' AND recipient = 'bob'", []string{"m1", "m3", "m5", "m7", "m9"}, nil, 1},
		{"what expired since", `INSERT INTO archived_messages SELECT *, 'ttl', 90 FROM messages WHERE id = 'm9'; DELETE FROM messages WHERE id = 'm9'`, []string{"m1", "m3", "m5", "m7"}, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := loseRows(t, tt.since)
			if done, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil || done.Missing() != tt.back {
				t.Fatalf("MergeMessages = %+v, %v; want %d rows back", done, err, tt.back)
			}
			unread := unreadOf(t, openAt(t, l.path).Reader)
			for peer, want := range map[string][]string{"bob": tt.waiting, "dora": tt.dora} {
				var ids []string
				for _, delivery := range unread[peer] {
					ids = append(ids, delivery.ID)
				}
				if diff := cmp.Diff(want, ids); diff != "" {
					t.Errorf("%s's unread mail:\n%s", peer, diff)
				}
			}
		})
	}
}

// TestSTO_16_MailThatAnotherReadAndArchivedStaysAway: it went to another
// recipient, and its only trace is in the archive.
func TestSTO_16_MailThatAnotherReadAndArchivedStaysAway(t *testing.T) {
	l := loseRows(t, "DELETE FROM messages WHERE id = 'm7' AND recipient = 'bob'")
	inStore(t, l.archive, "INSERT INTO archived_messages ("+schema.MessageColumns+") SELECT 'm7', 'dora'"+strings.TrimPrefix(schema.MessageColumns, "id, recipient")+" FROM archived_messages LIMIT 1")
	if done, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil || done.Missing() != 0 {
		t.Errorf("MergeMessages = %+v, %v", done, err)
	}
}

func TestSTO_16_UnreadMailThatTheCopyHasAsReadIsCounted(t *testing.T) {
	l := loseRows(t, "UPDATE messages SET read_at = NULL WHERE recipient = 'bob'")
	done, err := transfer.MergeMessages(t.Context(), l.merge())
	if err != nil || done.Missing() != 0 || done.Unread != 3 { // m4, m6 and m8
		t.Errorf("MergeMessages = %+v, %v", done, err)
	}
	if unread := unreadOf(t, openAt(t, l.path).Reader)["bob"]; len(unread) != 8 {
		t.Errorf("%d unread messages: rows that were there changed", len(unread))
	}
}

func TestSTO_16_OtherContentIsNamedAndStopsTheMerge(t *testing.T) {
	tests := map[string]string{
		"in the store":           "DELETE FROM messages WHERE id = 'm7'; UPDATE messages SET body = 'other' WHERE id = 'm9'",
		"in archived_messages":   "DELETE FROM messages WHERE id = 'm7'; INSERT INTO archived_messages SELECT *, 'ttl', 1 FROM messages WHERE id = 'm9'; DELETE FROM messages WHERE id = 'm9'; UPDATE archived_messages SET from_id = 'x' WHERE id = 'm9'",
		"only what it answers":   "UPDATE messages SET reply_to = 'm1' WHERE id = 'm9'",
		"only its target":        "UPDATE messages SET to_target = 'x' WHERE id = 'm9'",
		"only its conversation":  "UPDATE messages SET conversation_id = 'x' WHERE id = 'm9'",
		"only its hop":           "UPDATE messages SET hop = 7 WHERE id = 'm9'",
		"only its sender's name": "UPDATE messages SET from_name = 'x' WHERE id = 'm9'",
		"only its sender's kind": "UPDATE messages SET from_agent = 'x' WHERE id = 'm9'",
		"only its time of birth": "DELETE FROM messages WHERE id = 'm7'; UPDATE messages SET created_at = 5 WHERE id = 'm9'",
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			l := loseRows(t, script)
			before := primaryRows(t, l.path)
			for name, merge := range map[string]func(context.Context, transfer.Merge) (transfer.Merged, error){"PreviewMerge": transfer.PreviewMerge, "MergeMessages": transfer.MergeMessages} {
				_, err := merge(t.Context(), l.merge())
				if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "m9 for bob, m9 for carol") {
					t.Errorf("%s = %v", name, err)
				}
			}
			if diff := cmp.Diff(before, primaryRows(t, l.path)); diff != "" {
				t.Errorf("the refused merge changed rows:\n%s", diff)
			}
		})
	}
	t.Run("in the archive", func(t *testing.T) {
		l := loseRows(t, "")
		inStore(t, l.archive, "UPDATE archived_messages SET body = 'other' WHERE id = 'm0'")
		if _, err := transfer.MergeMessages(t.Context(), l.merge()); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "m0 for ") {
			t.Errorf("MergeMessages = %v", err)
		}
	})
}

func TestSTO_16_TenConflictsAreNamedAndTheOthersCounted(t *testing.T) {
	for script, more := range map[string]string{
		"UPDATE messages SET body = 'other' WHERE id IN ('m5', 'm6', 'm7', 'm8', 'm9')":       "",
		"UPDATE messages SET body = 'other' WHERE id IN ('m4', 'm5', 'm6', 'm7', 'm8', 'm9')": " and 2 more",
	} {
		l := loseRows(t, script)
		_, err := transfer.PreviewMerge(t.Context(), l.merge())
		if text := fmt.Sprint(err); strings.Count(text, " for ") != 10 || !strings.Contains(text, more) || strings.Contains(text, " more") != (more != "") {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// TestSTO_16_ASecondMergeBringsBackWhatWasLostSince: merged rows have places of
// their own, and a later merge needs others.
func TestSTO_16_ASecondMergeBringsBackWhatWasLostSince(t *testing.T) {
	l := loseRows(t, "DELETE FROM messages WHERE created_at > 6500")
	for _, script := range []string{"", "DELETE FROM messages WHERE created_at BETWEEN 3500 AND 7500", "DELETE FROM messages"} {
		inStore(t, l.path, script)
		if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
			t.Fatalf("after %q: %v", script, err)
		}
		if diff := cmp.Diff(l.before, histories(t, openAt(t, l.path).Reader), told, sameDeliveries); diff != "" {
			t.Errorf("after %q the history differs (-before +merged):\n%.2000s", script, diff)
		}
	}
}

func TestSTO_16_MessagesOfOneMomentKeepTheirOrder(t *testing.T) {
	path, copied := filepath.Join(t.TempDir(), "bridge.db"), filepath.Join(t.TempDir(), "messages.db")
	db := openAt(t, path)
	for _, id := range []string{"b", "c", "a"} {
		appendAll(t, db, note(id, "alice", "text", 5, "bob"))
	}
	orders := func(r *Reader) (ids []string) {
		t.Helper()
		recent, err := r.Recent(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range recent {
			ids = append(ids, row.ID)
		}
		for _, delivery := range unreadOf(t, r)["bob"] {
			ids = append(ids, delivery.ID)
		}
		return ids
	}
	before := orders(db.Reader)
	mustClose(t, db)
	if _, err := transfer.CopyMessages(t.Context(), transfer.ScopedCopy{Store: path, To: copied, Pause: func() error { return nil }}); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, losses["everything"])
	if _, err := transfer.MergeMessages(t.Context(), transfer.Merge{Store: path, From: copied, Archive: filepath.Join(t.TempDir(), "none.db")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, orders(openAt(t, path).Reader)); diff != "" || len(before) != 6 {
		t.Errorf("the order differs (-before +merged):\n%s", diff)
	}
}

// TestSTO_16_WhenAMessageWasAnswered: what the store knows stays, and what it
// lost is the first answer of the copy.
func TestSTO_16_WhenAMessageWasAnswered(t *testing.T) {
	for script, want := range map[string]int64{
		"DELETE FROM messages WHERE id = 'm9'; DELETE FROM delivery_stages":                                              9500,
		"DELETE FROM messages WHERE id = 'm9'; UPDATE delivery_stages SET answered_at = 9300 WHERE answered_at NOT NULL": 9300,
		`DELETE FROM messages WHERE id = 'm9'; DELETE FROM delivery_stages;
			INSERT INTO archived_messages SELECT *, 'ttl', 90 FROM messages WHERE id = 'm8'; DELETE FROM messages WHERE id = 'm8'`: 9500,
	} {
		l := loseRows(t, script)
		inStore(t, l.copied, `INSERT INTO messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at)
			SELECT 'r2', recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, 'once more', 9600, read_at FROM messages WHERE id = 'r1'
			UNION ALL SELECT 'r3', recipient, 'dora', from_name, from_agent, to_target, conversation_id, reply_to, hop, 'from one who never had it', 9700, read_at FROM messages WHERE id = 'r1'`)
		if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
			t.Fatal(err)
		}
		found, err := openAt(t, l.path).Find(t.Context(), "m8")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found.Deliveries {
			if d.Recipient == "bob" && d.Answered.At != want {
				t.Errorf("%s: answered at %d, want %d", script, d.Answered.At, want)
			}
		}
		pool, err := sql.Open("sqlite", sqlitex.DSN(l.path, "mode=ro"))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if strangers := column(t, pool, "SELECT message_id FROM delivery_stages WHERE recipient = 'dora'"); len(strangers) > 0 {
			t.Errorf("%s: an answer of somebody who never had %v counts", script, strangers)
		}
	}
}

// TestSTO_16_WhatTheCopyHasTwiceComesOnce: a message that moved to the archive
// while the copy was made is in both of its tables.
func TestSTO_16_WhatTheCopyHasTwiceComesOnce(t *testing.T) {
	l := loseRows(t, losses["everything"])
	l.archive = filepath.Join(t.TempDir(), "none.db")
	inStore(t, l.copied, "INSERT INTO archived_messages SELECT *, 'read', 5 FROM messages WHERE id = 'm4'",
		"INSERT INTO archived_messages SELECT * FROM archived_messages WHERE id = 'm0'")
	if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
		t.Fatal(err)
	}
	db := openAt(t, l.path)
	for _, id := range []string{"m0", "m4"} {
		if found, err := db.Find(t.Context(), id); err != nil || len(found.Deliveries) != 2 {
			t.Errorf("%s has the deliveries %+v, %v", id, found.Deliveries, err)
		}
	}
	if rows := primaryRows(t, l.path); rows["messages"]+rows["archived_messages"] != 21 { // ten messages for two, and an answer
		t.Errorf("%v", rows)
	}
}

func TestSTO_16_AMergeThatBringsFewerRowsIsUndone(t *testing.T) {
	l := loseRows(t, losses["every second row"]+"; CREATE TRIGGER swallow BEFORE INSERT ON messages WHEN new.id = 'm8' BEGIN SELECT RAISE(IGNORE); END")
	before := primaryRows(t, l.path)
	if _, err := transfer.MergeMessages(t.Context(), l.merge()); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("MergeMessages = %v", err)
	}
	if diff := cmp.Diff(before, primaryRows(t, l.path)); diff != "" {
		t.Errorf("the merge that failed left rows:\n%s", diff)
	}
}

func TestVER_06_AMergeTouchesNoStoreOrArchiveOfAnotherVersion(t *testing.T) {
	for name, change := range map[string]func(l lost){
		"an archive that is newer":  func(l lost) { inStore(t, l.archive, "PRAGMA user_version = 9") },
		"a store of older programs": func(l lost) { inStore(t, l.path, "DELETE FROM bridge_components WHERE name = 'deliveries'") },
	} {
		l := loseRows(t, losses["every second row"])
		change(l)
		before := primaryRows(t, l.path)
		if _, err := transfer.MergeMessages(t.Context(), l.merge()); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("%s: MergeMessages = %v", name, err)
		}
		if diff := cmp.Diff(before, primaryRows(t, l.path)); diff != "" {
			t.Errorf("%s: rows changed:\n%s", name, diff)
		}
	}
}

func TestSTO_16_AFailureAtAnyStepTakesEverythingBack(t *testing.T) {
	l := loseRows(t, losses["every second row"])
	before := primaryRows(t, l.path)
	broken := errors.New("broken")
	var steps []string
	for n := 1; ; n++ {
		count, merge := 0, l.merge()
		merge.Step = func(name string) error {
			if count++; count == n {
				steps = append(steps, name)
				return broken
			}
			return nil
		}
		_, err := transfer.MergeMessages(t.Context(), merge)
		if err == nil {
			break
		}
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, primaryRows(t, l.path)); diff != "" && steps[len(steps)-1] != "committed the merge" {
			t.Errorf("after %s:\n%s", steps[len(steps)-1], diff)
		}
	}
	if want := "commit the merge"; !slices.Contains(steps, want) || len(steps) < 6 {
		t.Errorf("steps: %q", steps)
	}
}

func TestSTO_16_ALargeMergeComesInBatches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	const rows = 2*2000 + 7
	inStore(t, path, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO messages SELECT 'm' || i, 'bob', 'alice', 'alice', 'claude', 'bob', 'c', NULL, 0, 'text ' || i, i, NULL FROM n`, rows))
	copied := filepath.Join(t.TempDir(), "messages.db")
	if _, err := transfer.CopyMessages(t.Context(), transfer.ScopedCopy{Store: path, To: copied, Pause: func() error { return nil }}); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "DELETE FROM messages WHERE created_at % 2 = 0")
	last, calls := 0, 0
	done, err := transfer.MergeMessages(t.Context(), transfer.Merge{Store: path, From: copied, Archive: filepath.Join(t.TempDir(), "none.db"), Told: func(done, all int) {
		last, calls = done, calls+1
		if all != rows/2 {
			t.Errorf("told %d of %d", done, all)
		}
	}})
	if err != nil || done.Messages != rows/2 || last != rows/2 || calls < 2 {
		t.Fatalf("MergeMessages = %+v, %v; told %d in %d calls", done, err, last, calls)
	}
	recent, err := openAt(t, path).Recent(t.Context(), rows)
	if err != nil || len(recent) != rows {
		t.Fatalf("%d messages, %v", len(recent), err)
	}
}

func TestSTO_16_MergedMessagesAreFoundByTheirWords(t *testing.T) {
	l := loseRows(t, losses["everything"])
	db := openIndexed(t, l.path)
	appendAll(t, db, note("new", "alice", "text of today", 30_000, "bob"))
	lost := wordIDs(t, db, wordQuery(t, "text"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
		t.Fatal(err)
	}
	merged := wordIDs(t, openIndexed(t, l.path), wordQuery(t, "text"))
	slices.Sort(merged)
	// The archive still had m0 to m2, of which bob's unread m1 was not in it.
	want := []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "new"}
	if diff := cmp.Diff(want, merged); diff != "" || len(lost) >= len(want) {
		t.Errorf("found before %q and after:\n%s", lost, diff)
	}
}

// TestSTO_16_AnyPieceOfMergedTextIsFound asks an index that was made before the
// merge, and one that has it.
func TestSTO_16_AnyPieceOfMergedTextIsFound(t *testing.T) {
	l := loseRows(t, losses["the newest"])
	opts := testOptions()
	opts.Index, opts.group = indexPath(l.path), 2
	for _, want := range []int{4, 10} {
		db, err := Open(t.Context(), l.path, opts)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the pieces are found", func() bool {
			found, err := db.Search(t.Context(), "ext ", 0, 100)
			newestFirst := slices.IsSortedFunc(found, func(a, b mail.HistoryRow) int { return int(b.CreatedAt - a.CreatedAt) })
			return err == nil && len(found) == want && newestFirst
		})
		wordIDs(t, db, wordQuery(t, "text"))
		mustClose(t, db)
		if _, err := transfer.MergeMessages(t.Context(), l.merge()); err != nil {
			t.Fatal(err)
		}
	}
}
