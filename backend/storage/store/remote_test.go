package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/storage/store/transfer"
)

// across is a message of alice's to a session of the PC desk.
func across(id string, at int64) bridge.Message {
	msg := note(id, "alice", "text of "+id, at, "desk/api")[0]
	msg.To = "desk/api"
	return msg
}

func sendAcross(t *testing.T, db *DB, ids ...string) {
	t.Helper()
	for i, id := range ids {
		if _, fresh, err := db.Remote().Append(t.Context(), across(id, int64(1000+i)), "desk-id"); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
	}
}

func waitingFor(t *testing.T, db *DB, pc string) []string {
	t.Helper()
	waiting, err := db.Remote().Waiting(t.Context(), pc, 100, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(waiting))
	for i, message := range waiting {
		ids[i] = message.ID
	}
	return ids
}

func crossingOf(t *testing.T, db *DB, id string) (bridge.Stage, mail.Crossing) {
	t.Helper()
	row, err := db.Find(t.Context(), id)
	if err != nil || len(row.Deliveries) != 1 {
		t.Fatalf("%s: %+v, %v", id, row, err)
	}
	return row.Deliveries[0].Stage(), row.Deliveries[0].Remote
}

// What a copy of messages alone brings back says nothing of paired PCs: whether it
// crossed nobody knows, so that it is never sent again by itself, and its sender sees
// that (STO-10, STO-16).
func TestRMT_21_AMergeSendsNothingToPairedPCsByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	sendAcross(t, db, "waits", "crossed", "read", "known")
	if err := db.Remote().RecordCrossed(t.Context(), "desk-id", []Crossed{{ID: "crossed"}, {ID: "read"}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Remote().RecordReceipts(t.Context(), "desk-id", []RemoteReceipt{{ID: "read", News: 1, Marks: map[bridge.Stage]mail.Fact{bridge.StageConsumed: {At: 2000, Evidence: "hook Stop"}}}}); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "messages.db")
	if _, err := transfer.CopyMessages(t.Context(), transfer.ScopedCopy{Store: path, Archive: filepath.Join(filepath.Dir(path), archiveName), To: copied, Pause: func() error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "DELETE FROM messages; DELETE FROM message_peers; DELETE FROM delivery_stages; DELETE FROM remote_outbox WHERE message_id <> 'known'")
	merge := transfer.Merge{Store: path, Archive: filepath.Join(filepath.Dir(path), archiveName), From: copied}
	for range 2 { // a second one changes nothing
		if _, err := transfer.MergeMessages(t.Context(), merge); err != nil {
			t.Fatal(err)
		}
		db = openAt(t, path)
		if got := waitingFor(t, db, "desk-id"); !slices.Equal(got, []string{"known"}) {
			t.Errorf("%v wait for desk", got)
		}
		for id, want := range map[string]bridge.Stage{"waits": bridge.StageRefused, "crossed": bridge.StageRefused, "read": bridge.StageConsumed, "known": bridge.StageDurable} {
			stage, crossing := crossingOf(t, db, id)
			if stage != want {
				t.Errorf("%s is %s, %+v, want %s", id, stage, crossing, want)
			}
			if stage == bridge.StageRefused && (crossing.Host != "desk" || crossing.Refused.Evidence != "it came back from a backup of messages, which does not say whether it reached that PC: send it again where that is needed") {
				t.Errorf("%s: %+v", id, crossing)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// That PC says that it has one: then it crossed.
	db = openAt(t, path)
	if err := db.Remote().RecordReceipts(t.Context(), "desk-id", []RemoteReceipt{{ID: "crossed", News: 1, Marks: map[bridge.Stage]mail.Fact{bridge.StageHanded: {At: 3000, Evidence: "hook Stop"}}}}); err != nil {
		t.Fatal(err)
	}
	if stage, crossing := crossingOf(t, db, "crossed"); stage != bridge.StageHanded || !crossing.Arrived.Happened() {
		t.Errorf("then it is %s, %+v", stage, crossing)
	}
	if found, err := InspectCrossings(t.Context(), path, true); err != nil || len(found.Odd) != 0 {
		t.Errorf("the doctor finds %+v, %v", found, err)
	}
}

func TestRMT_21_MailThatWaitsExpiresAndItsSenderSeesThat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	sendAcross(t, db, "waits", "crossed", "refused", "young")
	err := db.Remote().RecordCrossed(t.Context(), "desk-id", []Crossed{{ID: "crossed"}, {ID: "refused", Refused: "not allowed"}})
	if err != nil {
		t.Fatal(err)
	}
	marks, err := db.Expire(t.Context(), ExpireRule{QueuedBefore: 1003, Limit: 100}) // all but the last are old
	if err != nil || len(marks) != 1 || marks[0].MessageID != "waits" || marks[0].Recipient != "desk/api" {
		t.Fatalf("%+v expired, %v", marks, err)
	}
	if got := waitingFor(t, db, "desk-id"); !slices.Equal(got, []string{"young"}) {
		t.Errorf("%v wait", got)
	}
	for id, want := range map[string]bridge.Stage{"waits": bridge.StageExpired, "crossed": bridge.StageArrived, "refused": bridge.StageRefused, "young": bridge.StageDurable} {
		if stage, _ := crossingOf(t, db, id); stage != want {
			t.Errorf("%s is %s, want %s", id, stage, want)
		}
	}
	// Its PC had it after all: an answer that came late counts.
	if err := db.Remote().RecordCrossed(t.Context(), "desk-id", []Crossed{{ID: "waits"}}); err != nil {
		t.Fatal(err)
	}
	if found, err := InspectCrossings(t.Context(), path, true); err != nil || len(found.Odd) != 0 || len(found.Waiting) != 1 || found.Waiting[0] != (Queue{Host: "desk", Count: 1, Since: 1003}) {
		t.Errorf("the doctor finds %+v, %v", found, err)
	}
	// The message lifetime ends also what has left.
	if marks, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 9000, Limit: 100}); err != nil || len(marks) != 3 {
		t.Errorf("%+v expired then, %v", marks, err)
	}
	if stage, _ := crossingOf(t, db, "young"); stage != bridge.StageExpired {
		t.Errorf("young is %s", stage)
	}
}

// The archive takes what was read; what a paired PC has still to hear of it stays.
func TestSTO_07_ArchivedMailOfPairedPCsKeepsItsState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	sendAcross(t, db, "waits", "read")
	came := note("came", "laptop/planner", "hello", 1000, "bob")[0]
	if fresh, refused, err := db.Remote().Take(t.Context(), []bridge.Message{came}, "laptop-id"); err != nil || len(fresh) != 1 || refused[0] != nil {
		t.Fatal(fresh, refused, err)
	}
	receipt := RemoteReceipt{ID: "read", News: 1, Marks: map[bridge.Stage]mail.Fact{bridge.StageConsumed: {At: 2000, Evidence: "hook Stop"}}}
	if err := db.Remote().RecordReceipts(t.Context(), "desk-id", []RemoteReceipt{receipt}); err != nil {
		t.Fatal(err)
	}
	if err := db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{{MessageID: "came", Recipient: "bob", At: 2000, Evidence: "hook Stop"}}); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(filepath.Dir(path), archiveName)
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, transfer.ArchiveRule{Before: 6000, Now: 9000}); err != nil || moved != 2 {
		t.Fatalf("%d moved, %v", moved, err)
	}
	if got := waitingFor(t, db, "desk-id"); !slices.Equal(got, []string{"waits"}) {
		t.Errorf("%v wait", got)
	}
	if stage, crossing := crossingOf(t, db, "read"); stage != bridge.StageConsumed || !crossing.Arrived.Happened() {
		t.Errorf("the archived one is %s, %+v", stage, crossing)
	}
	news, err := db.Remote().News(t.Context(), "laptop-id", 10)
	if err != nil || len(news) != 1 || news[0].Marks[bridge.StageConsumed].At != 2000 {
		t.Errorf("laptop is to hear %+v, %v", news, err)
	}
	// The same message sent again is the same one, also from the archive.
	fresh, refused, err := db.Remote().Take(t.Context(), []bridge.Message{came}, "laptop-id")
	if err != nil || len(fresh) != 0 || refused[0] != nil {
		t.Errorf("again: %+v, %v, %v", fresh, refused, err)
	}
	_, refused, err = db.Remote().Take(t.Context(), []bridge.Message{came, note("next", "desk/x", "hello", 1000, "bob")[0]}, "desk-id")
	if err != nil || bridge.CodeOf(refused[0]) != bridge.Conflict || refused[1] != nil {
		t.Errorf("of another PC: %v, %v", refused, err)
	}
	if found, err := InspectCrossings(t.Context(), path, true); err != nil || len(found.Odd) != 0 {
		t.Errorf("the doctor finds %+v, %v", found, err)
	}
}

func TestSTO_18_OddRowsAboutPairedPCsAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	sendAcross(t, db, "a", "b")
	if _, err := db.Remote().Import(t.Context(), []decision.Revision{}, "desk-id"); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		script, table, key string
		newer              bool
	}{
		{"UPDATE remote_outbox SET state = 'parked' WHERE message_id = 'a'", "remote_outbox", "a", true},
		{"UPDATE remote_outbox SET state = 'waiting' WHERE message_id = 'a'; DELETE FROM messages WHERE id = 'a'", "remote_outbox", "a", false},
		{"UPDATE remote_outbox SET state = 'arrived' WHERE message_id = 'a'; UPDATE remote_outbox SET recipient = 'bob' WHERE message_id = 'b'", "remote_outbox", "2", false},
		{"DELETE FROM remote_outbox WHERE message_id = 'b'; INSERT INTO remote_inbox (message_id, pc, arrived_at, told) VALUES ('c', 'x', 1, 1)", "remote_inbox", "c", false},
		{"DELETE FROM remote_inbox; INSERT INTO remote_decisions (decision_id, pc, arrived_at) VALUES ('d', 'x', 1)", "remote_decisions", "d", false},
		{"DELETE FROM remote_decisions; DROP TABLE remote_inbox", "", "", false},
	} {
		inStore(t, path, tt.script)
		found, err := InspectCrossings(t.Context(), path, true)
		if tt.table == "" {
			if err != nil || len(found.Odd) != 0 {
				t.Errorf("%d: %+v, %v", i, found, err)
			}
			continue
		}
		if err != nil || len(found.Odd) != 1 || found.Odd[0].Table != tt.table || found.Odd[0].Key != tt.key || found.Odd[0].Newer != tt.newer || found.Odd[0].Why == "" {
			t.Errorf("%d: %+v, %v", i, found, err)
		}
	}
	if _, err := InspectCrossings(t.Context(), filepath.Join(t.TempDir(), "none.db"), false); err == nil {
		t.Error("a store that is not there was looked through")
	}
}

// What the hub has is not on the other PC, and says so; what it refused waits here and
// says why (HUB-05).
func TestHUB_05_AMessageAtTheHubIsNotSaidToBeThere(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "bridge.db"))
	sendAcross(t, db, "one", "two", "three")
	remote := db.Remote()
	wants := func(id string, stage bridge.Stage, words string) {
		t.Helper()
		if got, crossing := crossingOf(t, db, id); got != stage || crossing.Words() != words || crossing.IsWaiting() != (stage == bridge.StageDurable) {
			t.Errorf("%s is %s: %q, waits %v; want %s: %q", id, got, crossing.Words(), crossing.IsWaiting(), stage, words)
		}
	}
	if err := remote.RecordAtHub(t.Context(), "desk-id", []string{"one"}); err != nil {
		t.Fatal(err)
	}
	if n, err := remote.RecordHeld(t.Context(), "desk-id", "the hub is full"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	wants("one", bridge.StageAtHub, "at the team's hub, not on desk yet")
	wants("two", bridge.StageDurable, "waiting for desk: the hub is full")
	if since, err := remote.AtHub(t.Context(), "desk-id"); since == 0 || err != nil {
		t.Errorf("at the hub since %d, %v", since, err)
	}
	if got := waitingFor(t, db, "desk-id"); !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("%v wait", got)
	}
	// The PC has it, or will not, whatever lies at the hub.
	err := remote.RecordAtHub(t.Context(), "desk-id", []string{"two", "three"})
	if err == nil {
		err = remote.RecordCrossed(t.Context(), "desk-id", []Crossed{{ID: "one"}, {ID: "two", Refused: "not allowed"}})
	}
	if err == nil {
		err = remote.RecordAtHub(t.Context(), "desk-id", []string{"one"}) // late
	}
	if err != nil {
		t.Fatal(err)
	}
	wants("one", bridge.StageArrived, "on desk")
	wants("two", bridge.StageRefused, "desk refused it: not allowed")
	wants("three", bridge.StageAtHub, "at the team's hub, not on desk yet")
	if err := remote.Recall(t.Context(), "desk-id"); err != nil {
		t.Fatal(err)
	}
	wants("one", bridge.StageArrived, "on desk")
	wants("three", bridge.StageDurable, "waiting for desk")
	if since, err := remote.AtHub(t.Context(), "desk-id"); since != 0 || err != nil {
		t.Errorf("at the hub since %d, %v", since, err)
	}
	err = remote.RecordAtHub(t.Context(), "desk-id", []string{"three"})
	if n, refusedErr := remote.RefuseStrangers(t.Context(), nil, "gone"); n != 1 || refusedErr != nil || err != nil {
		t.Errorf("%d refused, %v, %v", n, refusedErr, err)
	}
	wants("three", bridge.StageRefused, "desk refused it: gone")
}

// The queue age is for mail to nobody known: a PC of the team is known while it is away,
// and what comes from another PC ages here from when it came (HUB-05).
func TestHUB_05_TheQueueAgeSparesWhatWaitsForTheTeam(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "bridge.db"))
	sendAcross(t, db, "waits")
	came := note("came", "desk/api", "late", 1000, "nobody-live")[0]
	if _, _, err := db.Remote().Take(t.Context(), []bridge.Message{came}, "desk-id"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rule ExpireRule
		want []string
	}{
		{ExpireRule{QueuedBefore: 5000, Limit: 10, Team: []string{"desk-id"}}, nil},
		{ExpireRule{QueuedBefore: 5000, Limit: 10, Team: []string{"other"}}, []string{"waits"}},
		{ExpireRule{QueuedBefore: 1 << 60, Limit: 10}, []string{"came"}},
	} {
		marks, err := db.Expire(t.Context(), tt.rule)
		var got []string
		for _, mark := range marks {
			got = append(got, mark.MessageID)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v expired, %v; want %v", tt.rule, got, err, tt.want)
		}
	}
}

// TestRMT_21_MailOfOnePCIsReadInTheOrderInWhichItWasSent: each frame came by its own way,
// so how far the other clock is behind is not the same for any two of them.
func TestRMT_21_MailOfOnePCIsReadInTheOrderInWhichItWasSent(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "bridge.db"))
	from := func(host, id string, at int64) bridge.Message {
		msg := note(id, "alice", "text of "+id, at, "api")[0]
		msg.From = bridge.Address{ID: host + "/alice", Name: host + "/alice", Agent: bridge.Codex}
		return msg
	}
	for _, frame := range []struct {
		host string
		msgs []bridge.Message
	}{
		{"desk", []bridge.Message{from("desk", "d1", 2000), from("desk", "d2", 2010)}},
		{"tower", []bridge.Message{from("tower", "t1", 1500)}},                            // another PC's, and its own time
		{"desk", []bridge.Message{from("desk", "d3", 1990), from("desk", "d4", 2005)}},    // that came sooner
		{"desk", []bridge.Message{from("desk", "d5", 2300), from("desk", "d6", 2300)}},    // as it should be
		{"tower", []bridge.Message{from("tower", "t2", 1400), from("tower", "t3", 2305)}}, // whose clock was put back
	} {
		fresh, refused, err := db.Remote().Take(t.Context(), frame.msgs, frame.host+"-id")
		if err != nil || len(fresh) != len(frame.msgs) || slices.ContainsFunc(refused, func(err error) bool { return err != nil }) {
			t.Fatal(fresh, refused, err)
		}
	}
	unread, err := db.Unread(t.Context(), "api", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, delivery := range unread {
		got = append(got, fmt.Sprintf("%s %d", delivery.ID, delivery.CreatedAt))
	}
	want := []string{"t1 1500", "t2 1500", "d1 2000", "d2 2010", "d3 2010", "d4 2010", "d5 2300", "d6 2300", "t3 2305"}
	if !slices.Equal(got, want) {
		t.Errorf("it reads %q, want %q", got, want)
	}
}
