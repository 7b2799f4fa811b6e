package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

// requireFresh wants what the page is shown to be what somebody else reads in the store.
func requireFresh(t testing.TB, db *DB) {
	t.Helper()
	ctx := context.Background()
	other, err := OpenReader(ctx, db.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	wantRows, err := other.Recent(ctx, bridge.RecentMessages)
	if err != nil {
		t.Fatal(err)
	}
	wantUnread, err := other.UnreadCounts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Recent(ctx, bridge.RecentMessages)
	if diff := cmp.Diff(wantRows, rows); err != nil || diff != "" {
		t.Fatalf("recent messages: %v (-stored +shown):\n%s", err, diff)
	}
	unread, err := db.UnreadCounts(ctx)
	if diff := cmp.Diff(wantUnread, unread); err != nil || diff != "" {
		t.Fatalf("unread messages: %v (-stored +shown):\n%s", err, diff)
	}
	wantPeers, err := other.Peers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	peers, err := db.Peers(ctx)
	if diff := cmp.Diff(wantPeers, peers); err != nil || diff != "" {
		t.Fatalf("peers: %v (-stored +shown):\n%s", err, diff)
	}
}

func TestMSG_09_EveryWriteIsInTheNextLook(t *testing.T) {
	delivery := func(db *DB, id string) mail.Delivery {
		row, err := db.Find(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		return row.Deliveries[0]
	}
	mark := mail.Mark{MessageID: "handed", Recipient: "bob", At: 2000, Via: mail.ViaHook, Evidence: "hook"}
	tests := []struct {
		name  string
		write func(context.Context, *DB) error
	}{
		{"a send", func(ctx context.Context, db *DB) error {
			_, _, err := db.Append(ctx, note("new", "ann", "x", 3000, "bob", "cy"))
			return err
		}},
		{"an answer", func(ctx context.Context, db *DB) error {
			_, _, err := db.Append(ctx, replyTo(note("new", "bob", "x", 3000, "ann"), "waits"))
			return err
		}},
		{"a send that is handed over", func(ctx context.Context, db *DB) error {
			return db.AppendWithHandover(ctx, note("new", "ann", "x", 3000, "bob")[0], mail.ViaQueue, "")
		}},
		{"a stage", func(ctx context.Context, db *DB) error {
			return db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: "waits", Recipient: "bob", At: 3000, Evidence: "e"}})
		}},
		{"activity", func(ctx context.Context, db *DB) error {
			marks, err := db.ConsumeHandedOver(ctx, "bob", 2500, 3000, "next", none)
			if len(marks) != 1 {
				t.Errorf("consumed %v", marks)
			}
			return err
		}},
		{"a hand-over anew", func(ctx context.Context, db *DB) error {
			return db.Rehand(ctx, mail.Mark{MessageID: "handed", Recipient: "bob", At: 2100, Via: mail.ViaTool, Evidence: "tool"})
		}},
		{"a hand-over taken back", func(ctx context.Context, db *DB) error { return db.Unhand(ctx, "handed", "bob") }},
		{"several taken back", func(ctx context.Context, db *DB) error {
			return db.UnhandThese(ctx, []mail.Delivery{delivery(db, "handed")})
		}},
		{"another recipient", func(ctx context.Context, db *DB) error { return db.Reassign(ctx, "bob", "dan") }},
		{"an expiry", func(ctx context.Context, db *DB) error {
			marks, err := db.Expire(ctx, ExpireRule{TTLBefore: 1500, Limit: 10})
			if len(marks) == 0 {
				t.Error("nothing expired")
			}
			return err
		}},
		{"a message for a paired PC", func(ctx context.Context, db *DB) error {
			_, _, err := db.Remote().Append(ctx, across("new", 3000), "desk-id")
			return err
		}},
		{"word from a paired PC", func(ctx context.Context, db *DB) error {
			return db.Remote().RecordCrossed(ctx, "desk-id", []Crossed{{ID: "crosses"}})
		}},
		{"a receipt from a paired PC", func(ctx context.Context, db *DB) error {
			return db.Remote().RecordReceipts(ctx, "desk-id", []RemoteReceipt{{ID: "crosses", Marks: map[bridge.Stage]mail.Fact{bridge.StageConsumed: {At: 3000, Evidence: "e"}}}})
		}},
		{"a session", func(ctx context.Context, db *DB) error {
			return db.SavePeer(ctx, Peer{ID: "p-1", Name: "ann", Agent: bridge.Claude, SeenAt: 1000})
		}},
		{"mail of a paired PC", func(ctx context.Context, db *DB) error {
			_, _, err := db.Remote().Take(ctx, note("new", "desk/ann", "x", 3000, "bob"), "desk-id")
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := openTest(t)
			appendAll(t, db, note("waits", "ann", "x", 1000, "bob"), note("handed", "ann", "x", 1001, "bob"))
			if _, _, err := db.Remote().Append(t.Context(), across("crosses", 1002), "desk-id"); err != nil {
				t.Fatal(err)
			}
			if err := db.Record(t.Context(), bridge.StageHanded, []mail.Mark{mark}); err != nil {
				t.Fatal(err)
			}
			requireFresh(t, db)
			if err := tt.write(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			requireFresh(t, db)
			requireFresh(t, db)
		})
	}
}

// What is shown is what was written before the look began, whatever else goes on.
func TestMSG_09_LooksBesideWritesMissNothing(t *testing.T) {
	db := openTest(t)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			ctx, recipient := t.Context(), fmt.Sprint("peer", w)
			for i := range 25 {
				id := fmt.Sprintf("m-%d-%d", w, i)
				if _, _, err := db.Append(ctx, note(id, "ann", "x", 1000, recipient)); err != nil {
					t.Error(err)
					return
				}
				requireShown(t, db, id, recipient, 1)
				if err := db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: id, Recipient: recipient, At: 2000, Evidence: "e"}}); err != nil {
					t.Error(err)
					return
				}
				requireShown(t, db, id, recipient, 0)
			}
		})
	}
	all.Wait()
	requireFresh(t, db)
}

// requireShown wants the newest message of a recipient shown, and so many unread.
func requireShown(t *testing.T, db *DB, id, recipient string, unread int) {
	t.Helper()
	rows, err := db.Recent(t.Context(), bridge.RecentMessages)
	if err != nil {
		t.Error(err)
		return
	}
	shown := -1
	for _, row := range rows {
		if row.ID == id && row.Deliveries[0].Consumed.Happened() {
			shown = 0
		} else if row.ID == id {
			shown = 1
		}
	}
	counts, err := db.UnreadCounts(t.Context())
	if err != nil || shown != unread || counts[recipient] != unread {
		t.Errorf("%s: unread %d and %d, want %d (%v)", id, shown, counts[recipient], unread, err)
	}
}

// More is touched than is kept apart, and fewer messages are shown than there are.
func TestMSG_09_MuchIsTouchedBetweenTwoLooks(t *testing.T) {
	db := openTest(t)
	for i := range bridge.RecentMessages + 10 {
		appendAll(t, db, note(fmt.Sprint("m-", i), "ann", "x", 1000, "bob"))
	}
	requireFresh(t, db)
	last := mail.Mark{MessageID: fmt.Sprint("m-", bridge.RecentMessages), Recipient: "bob", At: 2000, Evidence: "e"}
	marks := []mail.Mark{last}
	for i := range 1_000 {
		marks = append(marks, mail.Mark{MessageID: fmt.Sprint("nowhere-", i), Recipient: fmt.Sprint("nobody-", i), At: 2000, Evidence: "e"})
	}
	if err := db.Record(t.Context(), bridge.StageConsumed, marks); err != nil {
		t.Fatal(err)
	}
	requireFresh(t, db)
}

// A store that an older program writes, too, is read anew at each look (VER-04).
func TestVER_04_WhatOlderProgramsWriteIsInTheNextLook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 3)
	db := openDeferred(t, path, 3)
	requireFresh(t, db)
	older, err := sql.Open("sqlite", sqlitex.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	for _, write := range []string{
		"INSERT INTO messages SELECT 'older', recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, NULL FROM messages LIMIT 1",
		"UPDATE messages SET read_at = 2000 WHERE id = 'older'",
	} {
		if _, err := older.Exec(write); err != nil {
			t.Fatal(err)
		}
		requireFresh(t, db)
	}
}
