package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

func replyTo(msgs []bridge.Message, id string) []bridge.Message {
	for i := range msgs {
		msgs[i].ReplyTo = id
	}
	return msgs
}

func ids(rows []mail.HistoryRow) []string {
	list := []string{}
	for _, row := range rows {
		list = append(list, row.ID)
	}
	return list
}

func mustFind(t testing.TB, r *Reader, id string) mail.HistoryRow {
	t.Helper()
	row, err := r.Find(context.Background(), id)
	if err != nil {
		t.Fatalf("Find(%q): %v", id, err)
	}
	return row
}

func TestMSG_04_TheSameIDIsStoredOnce(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	first := note("m1", "alice", "hello ✓", 1000, "bob", "carol")
	appendAll(t, db, first)

	later := note("m1", "alice", "hello ✓", 2000, "bob", "carol")
	rows, fresh, err := db.Append(ctx, later)
	if err != nil || fresh {
		t.Fatalf("a repeated Append = fresh %v, %v; want the stored rows", fresh, err)
	}
	if diff := cmp.Diff(first, rows); diff != "" {
		t.Errorf("a repeated Append answers other rows (-stored +got):\n%s", diff)
	}
	if n := len(mustFind(t, db.Reader, "m1").Deliveries); n != 2 {
		t.Errorf("%d deliveries are stored, want 2", n)
	}

	different := map[string][]bridge.Message{
		"sender": note("m1", "mallory", "hello ✓", 1000, "bob"),
		"body":   note("m1", "alice", "bye", 1000, "bob"),
		"reply":  replyTo(note("m1", "alice", "hello ✓", 1000, "bob"), "m0"),
		"target": note("m1", "alice", "hello ✓", 1000, "bob"),
	}
	different["target"][0].To = "somebody else"
	for what, msgs := range different {
		if _, _, err := db.Append(ctx, msgs); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("the same id with another %s: %v, want a conflict", what, err)
		}
	}
}

func TestMSG_04_TheSameIDIsKnownInTheArchive(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	send := note("m1", "alice", "hello", 1000, "bob")
	appendAll(t, db, send)
	if marks, err := db.Expire(ctx, ExpireRule{TTLBefore: 2000, Limit: 10}); err != nil || len(marks) != 1 {
		t.Fatalf("Expire = %v, %v", marks, err)
	}
	rows, fresh, err := db.Append(ctx, send)
	if err != nil || fresh || len(rows) != 1 || rows[0].Body != "hello" {
		t.Errorf("Append of an archived send = %v, fresh %v, %v", rows, fresh, err)
	}
}

func TestAppendRefusesWhatIsNotOneSend(t *testing.T) {
	db := openTest(t)
	sends := map[string][]bridge.Message{
		"no message":      {},
		"two ids":         append(note("a", "x", "b", 1, "p"), note("b", "x", "b", 1, "q")...),
		"recipient twice": note("a", "x", "b", 1, "p", "p"),
		"no id":           note("", "x", "b", 1, "p"),
	}
	for what, msgs := range sends {
		if _, _, err := db.Append(t.Context(), msgs); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %v, want invalid", what, err)
		}
	}
}

func TestMSG_06_StagesAreFactsAndTheFirstWins(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	appendAll(t, db, note("m1", "alice", "question", 1000, "bob", "carol"))
	mark := func(at int64, evidence string) []mail.Mark {
		return []mail.Mark{{MessageID: "m1", Recipient: "bob", At: at, Evidence: evidence}, {MessageID: "unknown", Recipient: "bob", At: at, Evidence: evidence}}
	}
	for _, stage := range []bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed} {
		for try := range 2 {
			if err := db.Record(ctx, stage, mark(int64(1100+try), fmt.Sprint(stage, " ", try))); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendAll(t, db, replyTo(note("m2", "bob", "answer", 1200, "alice"), "m1"))
	appendAll(t, db, replyTo(note("m3", "bob", "once more", 1300, "alice"), "m1"))

	row := mustFind(t, db.Reader, "m1")
	want := note("m1", "alice", "question", 1000, "bob", "carol")
	want[0].ReadAt = 1100
	deliveries := []mail.Delivery{
		{
			Message: want[0], Woken: mail.Fact{At: 1100, Evidence: "woken 0"}, Handed: mail.Fact{At: 1100, Evidence: "handed 0"},
			Consumed: mail.Fact{At: 1100, Evidence: "consumed 0"}, Answered: mail.Fact{At: 1200, Via: mail.ViaReply, Evidence: "reply m2"},
		},
		{Message: want[1]},
	}
	if diff := cmp.Diff(deliveries, row.Deliveries); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if _, err := db.Find(ctx, "unknown"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("a mark of an unknown message: Find = %v, want not found", err)
	}
	if err := db.Record(ctx, bridge.StageAnswered, mark(1, "x")); err == nil {
		t.Error("Record took a stage that no mark proves")
	}
}

func TestMSG_06_WhatIsAskedForFirstIsNotBeyondTheLimit(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	for i := range 9 {
		appendAll(t, db, note(fmt.Sprint("m", i), "alice", "words", int64(1000+i), "bob"))
	}
	if err := db.Record(ctx, bridge.StageHanded, []mail.Mark{{MessageID: "m7", Recipient: "bob", At: 5000, Evidence: "hook"}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		first []string
		limit int
		want  []string
	}{
		{"nothing", nil, 3, []string{"m0", "m1", "m2"}},
		{"one far behind", []string{"m8"}, 3, []string{"m0", "m1", "m8"}},
		{"what was handed is not there", []string{"m7", "m8"}, 2, []string{"m0", "m8"}},
		{"more than fit", []string{"m3", "m5", "m6", "m8"}, 2, []string{"m3", "m5"}},
		{"all fit", []string{"m8"}, 20, []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m8"}},
	} {
		t.Run("MSG-06 "+tt.name, func(t *testing.T) {
			waiting, err := db.Waiting(ctx, "bob", tt.limit, func(d mail.Delivery) bool { return slices.Contains(tt.first, d.ID) })
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, d := range waiting {
				if got = append(got, d.ID); d.Body != "words" {
					t.Errorf("%s came as %q", d.ID, d.Body)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("waiting (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMSG_06_UnreadStaysUntilConsumed(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	appendAll(t, db,
		note("late", "alice", "3", 3000, "bob"), note("early", "alice", "1", 1000, "bob"),
		note("mid", "alice", "2", 2000, "bob", "carol"), note("mid-too", "alice", "2", 2000, "bob"))
	if err := db.Record(ctx, bridge.StageHanded, []mail.Mark{
		{MessageID: "early", Recipient: "bob", At: 5000, Evidence: "hook"},
		{MessageID: "mid", Recipient: "bob", At: 6000, Evidence: "hook"},
	}); err != nil {
		t.Fatal(err)
	}
	checkUnread := func(want ...string) {
		t.Helper()
		unread, err := db.Unread(ctx, "bob", 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, d := range unread {
			got = append(got, d.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unread (-want +got):\n%s", diff)
		}
		if count, err := db.UnreadCount(ctx, "bob"); err != nil || count != len(want) {
			t.Errorf("UnreadCount = %d, %v; want %d", count, err, len(want))
		}
	}
	checkUnread("early", "mid", "mid-too", "late")
	if waiting, err := db.WaitingCount(ctx, "bob"); err != nil || waiting != 2 {
		t.Errorf("WaitingCount = %d, %v; want the 2 that were not handed", waiting, err)
	}
	if unread, err := db.Unread(ctx, "bob", 1, nil); err != nil || len(unread) != 1 || unread[0].Handed.At != 5000 {
		t.Errorf("Unread(1) = %v, %v; want the handed one", unread, err)
	}

	marks, err := db.ConsumeHandedOver(ctx, "bob", 5500, 7000, "next activity: Stop", none)
	want := []mail.Mark{{MessageID: "early", Recipient: "bob", At: 7000, Via: mail.ViaActivity, Evidence: "next activity: Stop"}}
	if diff := cmp.Diff(want, marks); err != nil || diff != "" {
		t.Errorf("ConsumeHandedOver: %v (-want +got):\n%s", err, diff)
	}
	checkUnread("mid", "mid-too", "late")
	if marks, err := db.ConsumeHandedOver(ctx, "bob", 5500, 8000, "again", none); err != nil || len(marks) != 0 {
		t.Errorf("ConsumeHandedOver again = %v, %v; want nothing", marks, err)
	}
	counts, err := db.UnreadCounts(ctx)
	if diff := cmp.Diff(map[string]int{"bob": 3, "carol": 1}, counts); err != nil || diff != "" {
		t.Errorf("UnreadCounts: %v (-want +got):\n%s", err, diff)
	}
}

func TestRecentGivesTheOrderOfStoringWithAllDeliveries(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	appendAll(t, db,
		note("m1", "a", "1", 1000, "b"), note("m2", "a", "2", 5000, "b", "c"), // a clock that jumped ahead
		note("m3", "a", "3", 2000, "b"), note("m4", "a", "4", 3000, "c"))
	check := func(limit int, want ...string) {
		t.Helper()
		rows, err := db.Recent(ctx, limit)
		if diff := cmp.Diff(want, ids(rows)); err != nil || diff != "" {
			t.Errorf("Recent(%d): %v (-want +got):\n%s", limit, err, diff)
		}
	}
	check(10, "m4", "m3", "m2", "m1")
	check(3, "m4", "m3", "m2")
	if n := len(mustFind(t, db.Reader, "m2").Deliveries); n != 2 {
		t.Errorf("m2 has %d deliveries, want 2", n)
	}
	// One of m2's deliveries and m3 go to the archive; m2 stays one row.
	if err := db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: "m2", Recipient: "b", At: 5001, Evidence: "x"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Expire(ctx, ExpireRule{QueuedBefore: 2500, Live: []string{"c"}, Limit: 10}); err != nil {
		t.Fatal(err)
	}
	check(10, "m4", "m2", "m3", "m1")
	if row := mustFind(t, db.Reader, "m3"); row.Stage() != bridge.StageExpired {
		t.Errorf("m3 is %s, want expired", row.Stage())
	}
}

func TestConversationFollowsTheMessages(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	var toBob, all []string
	for i := range 300 { // more than the writes between two rounds of the checkpointer
		id := fmt.Sprintf("m%03d", i)
		switch i % 3 {
		case 0:
			appendAll(t, db, note(id, "alice", "x", int64(1000+i), "bob", "carol"))
		case 1:
			appendAll(t, db, note(id, "bob", "x", int64(1000+i), "alice"))
		default:
			appendAll(t, db, note(id, "carol", "x", int64(1000+i), "alice"))
		}
		if i%3 != 2 {
			toBob = append(toBob, id)
		}
		all = append(all, id)
	}
	slices.Reverse(toBob)
	slices.Reverse(all)
	check := func(r *Reader, peer string, before int64, limit int, want []string) {
		t.Helper()
		rows, err := r.Conversation(ctx, peer, before, limit)
		if diff := cmp.Diff(want, ids(rows)); err != nil || diff != "" {
			t.Errorf("Conversation(%s, %d, %d): %v (-want +got):\n%s", peer, before, limit, err, diff)
		}
	}
	check(db.Reader, "bob", 0, 1000, toBob)
	check(db.Reader, "alice", 0, 1000, all)
	check(db.Reader, "bob", 0, 5, toBob[:5])
	check(db.Reader, "nobody", 0, 5, []string{})
	check(db.Reader, "alice", 1100, 3, []string{"m099", "m098", "m097"})

	// Everything leaves, and the places of the rows are given to new ones.
	for range 10 {
		if _, err := db.Expire(ctx, ExpireRule{TTLBefore: 5000, Limit: 100}); err != nil {
			t.Fatal(err)
		}
	}
	check(db.Reader, "bob", 0, 1000, toBob)
	appendAll(t, db, note("new", "bob", "x", 9000, "dave"))
	check(db.Reader, "dave", 0, 10, []string{"new"})
	check(db.Reader, "bob", 0, 2, []string{"new", toBob[0]})

	if err := db.Reassign(ctx, "dave", "erin"); err != nil {
		t.Fatal(err)
	}
	check(db.Reader, "erin", 0, 10, []string{"new"})
}

func TestReassignMovesUnreadMailWithItsStages(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	appendAll(t, db, note("m1", "alice", "x", 1, "old"), note("m2", "alice", "x", 2, "old", "new"), note("m3", "alice", "x", 3, "old"))
	for _, stage := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
		marks := []mail.Mark{{MessageID: "m3", Recipient: "old", At: 9, Evidence: "e"}}
		if stage == bridge.StageHanded {
			marks = append(marks, mail.Mark{MessageID: "m1", Recipient: "old", At: 9, Evidence: "e"}, mail.Mark{MessageID: "m2", Recipient: "old", At: 9, Evidence: "e"})
		}
		if err := db.Record(ctx, stage, marks); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Reassign(ctx, "old", "new"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, id := range []string{"m1", "m2", "m3"} {
		for _, d := range mustFind(t, db.Reader, id).Deliveries {
			got[id+" "+d.Recipient] = string(d.Stage())
		}
	}
	want := map[string]string{"m1 new": "handed", "m2 old": "handed", "m2 new": "durable", "m3 old": "consumed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after Reassign (-want +got):\n%s", diff)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	db := openTest(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Append(t.Context(), note("m", "a", "b", 1, "c")); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("Append after Close: %v", err)
	}
	if _, err := db.Recent(t.Context(), 1); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("Recent after Close: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := db.Find(t.Context(), "m"); errors.Is(err, context.Canceled) {
		t.Errorf("Find after Close: %v", err)
	}
}
