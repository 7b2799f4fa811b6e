package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

// testTime is the clock of tests that need none of their own.
var testTime = time.UnixMilli(1_800_000_000_000)

func testOptions() Options {
	return Options{Now: func() time.Time { return testTime }, Log: slog.New(slog.DiscardHandler)}
}

func openTest(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "bridge.db"))
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(context.Background(), path, testOptions())
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

// note is a message to each recipient.
func note(id, from, body string, at int64, recipients ...string) []bridge.Message {
	var msgs []bridge.Message
	for _, recipient := range recipients {
		msgs = append(msgs, bridge.Message{
			ID: id, Recipient: recipient, From: bridge.Address{ID: from, Name: "name-" + from, Agent: bridge.Claude},
			To: "target", ConversationID: "c-" + id, Hop: 1, Body: body, CreatedAt: at,
		})
	}
	return msgs
}

func appendAll(t testing.TB, db *DB, sends ...[]bridge.Message) {
	t.Helper()
	for _, send := range sends {
		if _, fresh, err := db.Append(context.Background(), send); err != nil || !fresh {
			t.Fatalf("Append(%s) = fresh %v, %v", send[0].ID, fresh, err)
		}
	}
}

func TestAppendIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := Open(context.Background(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		appendAll(t, db, note(fmt.Sprint("m", i), "a", "body ✓", int64(1000+i), "b", "c"))
	}
	before, err := db.Recent(context.Background(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := openAt(t, path).Recent(context.Background(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || len(after) != 5 || after[0].ID != "m9" || len(after[0].Deliveries) != 2 {
		t.Errorf("Recent(5) after reopening: %v\n%s", after, diff)
	}
}
