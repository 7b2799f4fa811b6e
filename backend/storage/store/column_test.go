package store

import (
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
)

// Tables of the field may have no types and no constraints: one odd row must not
// keep the others from being read.
func TestVER_01_OneOddRowHidesNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	inStore(t, path, `CREATE TABLE messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at, PRIMARY KEY (id, recipient));
		INSERT INTO messages VALUES ('plain', 'bob', 'a', 'a', 'claude', 'bob', 'c', NULL, 0, 'hello', 1000, NULL),
			('nulls', 'bob', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
			('texts', 'bob', 'a', 'a', 'claude', 'bob', 'c', NULL, '2', X'68656c6c6f', '2000', 'long ago'),
			('parts', 'bob', 'a', 'a', 'claude', 'bob', 'c', NULL, 1.5, 7, 3000.5, 4000.5),
			(NULL, NULL, 'a', 'a', 'claude', 'bob', 'c', NULL, 0, 'no name', 1000, NULL);
		PRAGMA user_version = 1`)
	db := openAt(t, path)
	rows, err := db.Recent(t.Context(), 10)
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d messages, %v", len(rows), err)
	}
	want := map[string]bridge.Message{
		"nulls": {}, "texts": {Hop: 2, Body: "hello", CreatedAt: 2000, ReadAt: 1}, "parts": {Hop: 1, Body: "7", CreatedAt: 3000, ReadAt: 4000},
	}
	for id, want := range want {
		row := mustFind(t, db.Reader, id)
		if got := row.Deliveries[0]; got.Hop != want.Hop || got.Body != want.Body || got.CreatedAt != want.CreatedAt || got.ReadAt != want.ReadAt {
			t.Errorf("%s is %+v", id, got)
		}
	}
	if unread, err := db.Unread(t.Context(), "bob", 10, nil); err != nil || len(unread) != 2 {
		t.Errorf("unread %v, %v", unread, err)
	}
}
