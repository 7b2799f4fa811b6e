package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

func TestDSK_06_TheMessagesSinceATimeAreBrief(t *testing.T) {
	db := openTest(t)
	ctx := t.Context()
	send := func(id string, at int64, body string, to ...string) {
		t.Helper()
		var rows []bridge.Message
		for _, recipient := range to {
			rows = append(rows, bridge.Message{ID: id, From: bridge.Address{ID: "a", Name: "api", Agent: bridge.Claude}, To: "web", ConversationID: id, Body: body, CreatedAt: at, Recipient: recipient})
		}
		if _, _, err := db.Append(ctx, rows); err != nil {
			t.Fatal(err)
		}
	}
	send("old", 999, "too old", "b")
	send("long", 1000, strings.Repeat("ä", 300), "b", "c")
	send("young", 2000, "short", "b")
	if err := db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: "long", Recipient: "c", At: 1500}}); err != nil {
		t.Fatal(err)
	}
	read := func(since int64, limit int) (told []string) {
		t.Helper()
		rows, err := db.Since(ctx, since, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			told = append(told, fmt.Sprintf("%s %d %d %s", row.ID, len([]rune(row.Body)), len(row.Deliveries), row.Stage()))
		}
		return told
	}
	long, young := "long 200 2 durable", "young 5 1 durable"
	for _, tt := range []struct {
		since int64
		limit int
		want  []string
	}{
		{1000, 10, []string{young, long}},
		{1001, 10, []string{young}},
		{2001, 10, nil},
		{0, 2, []string{young, long}},
		{0, 3, []string{young, long, "old 7 1 durable"}},
	} {
		if diff := cmp.Diff(tt.want, read(tt.since, tt.limit)); diff != "" {
			t.Errorf("since %d, at most %d: %s", tt.since, tt.limit, diff)
		}
	}
	if row := mustFind(t, db.Reader, "long"); len([]rune(row.Body)) != 300 {
		t.Errorf("the message itself has %d characters", len([]rune(row.Body)))
	}
}

func TestDSK_06_TheLastHoursAreCounted(t *testing.T) {
	const hour = 60 * 60 * 1000
	db := openTest(t)
	ctx := t.Context()
	now := int64(100 * hour)
	send := func(m bridge.Message, to ...string) {
		t.Helper()
		var rows []bridge.Message
		for _, recipient := range to {
			m.From, m.Recipient = bridge.Address{ID: "a", Name: "api", Agent: bridge.Claude}, recipient
			rows = append(rows, m)
		}
		if _, _, err := db.Append(ctx, rows); err != nil {
			t.Fatal(err)
		}
	}
	woken := func(id, recipient string, at int64) {
		t.Helper()
		if err := db.Record(ctx, bridge.StageWoken, []mail.Mark{{MessageID: id, Recipient: recipient, At: at}}); err != nil {
			t.Fatal(err)
		}
	}
	send(bridge.Message{ID: "before", To: "b", ConversationID: "before", Body: "x", CreatedAt: now - 3*hour - 1}, "b")
	send(bridge.Message{ID: "first", To: "*", ConversationID: "first", Body: "x", CreatedAt: now - 3*hour}, "b", "c")
	for i, recipient := range []string{"b", "c"} { // the notices of one decision
		send(bridge.Message{ID: fmt.Sprint("notice-", i), To: "*", ConversationID: "decision-d1", Hop: 100, Body: "x", CreatedAt: now - hour}, recipient)
	}
	send(bridge.Message{ID: "second", To: "b", ConversationID: "second", Body: "x", CreatedAt: now - 1}, "b")
	send(bridge.Message{ID: "later", To: "b", ConversationID: "later", Body: "x", CreatedAt: now + hour}, "b")
	woken("first", "b", now-2*hour)
	woken("first", "c", now-2*hour)
	woken("second", "b", now-1)
	woken("later", "b", now+hour)
	got, err := db.Hours(ctx, now, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []Hour{{From: now - 3*hour, Messages: 1}, {From: now - 2*hour, Wakes: 2}, {From: now - hour, Messages: 2, Wakes: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	send(bridge.Message{ID: "third", To: "b", ConversationID: "third", Body: "x", CreatedAt: now - 1}, "b")
	woken("third", "b", now-1) // by the same wake
	if got, err = db.Hours(ctx, now, 3); err != nil || got[2] != (Hour{From: now - hour, Messages: 3, Wakes: 1}) {
		t.Errorf("one wake by two messages: %+v, %v", got, err)
	}
}
