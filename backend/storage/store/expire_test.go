package store

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

func TestMSG_12_OldMailMovesToTheArchive(t *testing.T) {
	ctx := t.Context()
	db := openTest(t)
	appendAll(t, db,
		note("ancient", "a", "x", 100, "live"), note("ancient-read", "a", "x", 110, "live"),
		note("queued", "a", "x", 500, "gone"), note("spared", "a", "x", 510, "live"), note("young", "a", "x", 900, "gone"))
	if err := db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: "ancient-read", Recipient: "live", At: 120, Evidence: "hook"}}); err != nil {
		t.Fatal(err)
	}
	now := testTime.UnixMilli()
	marks, err := db.Expire(ctx, ExpireRule{TTLBefore: 200, QueuedBefore: 800, Live: []string{"live"}, Limit: 100})
	want := []mail.Mark{
		{MessageID: "queued", Recipient: "gone", At: now, Evidence: expiryWords[reasonQueued]},
		{MessageID: "ancient", Recipient: "live", At: now, Evidence: expiryWords[reasonTTL]},
	}
	if diff := cmp.Diff(want, marks); err != nil || diff != "" {
		t.Errorf("Expire: %v (-want +got):\n%s", err, diff)
	}
	stages := map[string]bridge.Stage{}
	for _, id := range []string{"ancient", "ancient-read", "queued", "spared", "young"} {
		stages[id] = mustFind(t, db.Reader, id).Stage()
	}
	wantStages := map[string]bridge.Stage{
		"ancient": bridge.StageExpired, "ancient-read": bridge.StageConsumed, "queued": bridge.StageExpired,
		"spared": bridge.StageDurable, "young": bridge.StageDurable,
	}
	if diff := cmp.Diff(wantStages, stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if unread, err := db.UnreadCounts(ctx); err != nil || !cmp.Equal(unread, map[string]int{"live": 1, "gone": 1}) {
		t.Errorf("unread = %v, %v", unread, err)
	}
	// A receipt that comes late still counts.
	if err := db.Record(ctx, bridge.StageConsumed, []mail.Mark{{MessageID: "queued", Recipient: "gone", At: now + 1, Evidence: "journal"}}); err != nil {
		t.Fatal(err)
	}
	if d := mustFind(t, db.Reader, "queued").Deliveries[0]; d.ReadAt != now+1 || d.Consumed.Evidence != "journal" {
		t.Errorf("a late receipt left %+v", d)
	}
}

func TestMSG_12_ZeroTurnsARuleOff(t *testing.T) {
	db := openTest(t)
	appendAll(t, db, note("m", "a", "x", 1, "gone"))
	for name, rule := range map[string]ExpireRule{"both off": {Limit: 9}, "young for both": {TTLBefore: 1, QueuedBefore: 1, Limit: 9}} {
		if marks, err := db.Expire(t.Context(), rule); err != nil || len(marks) != 0 {
			t.Errorf("%s: Expire = %v, %v", name, marks, err)
		}
	}
	if mustFind(t, db.Reader, "m").Stage() != bridge.StageDurable {
		t.Error("the message expired")
	}
}

func TestMSG_12_TheLimitIsKept(t *testing.T) {
	db := openTest(t)
	for _, id := range []string{"1", "2", "3"} {
		appendAll(t, db, note(id, "a", "x", 1, "gone"))
	}
	for _, want := range []int{2, 1, 0} {
		if marks, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 10, Limit: 2}); err != nil || len(marks) != want {
			t.Errorf("Expire moved %d, %v; want %d", len(marks), err, want)
		}
	}
}

func TestSTO_14_NothingLeavesWithoutACopy(t *testing.T) {
	for name, fault := range map[string]string{
		"the copy fails":        "CREATE TRIGGER fault BEFORE INSERT ON archived_messages WHEN NEW.id = 'm2' BEGIN SELECT RAISE(ABORT, 'fault'); END",
		"the copy is swallowed": "CREATE TRIGGER fault BEFORE INSERT ON archived_messages WHEN NEW.id = 'm2' BEGIN SELECT RAISE(IGNORE); END",
		"the copy is changed":   "CREATE TRIGGER fault AFTER INSERT ON archived_messages WHEN NEW.id = 'm2' BEGIN UPDATE archived_messages SET body = 'changed' WHERE rowid = NEW.rowid; END",
		"the removal fails":     "CREATE TRIGGER fault BEFORE DELETE ON messages WHEN OLD.id = 'm2' BEGIN SELECT RAISE(ABORT, 'fault'); END",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			appendAll(t, db, note("m1", "a", "x", 1, "b"), note("m2", "a", "x", 2, "b"), note("m3", "a", "x", 3, "b"))
			inStore(t, path, fault)
			if marks, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 10, Limit: 10}); err == nil {
				t.Fatalf("Expire with a fault = %v", marks)
			}
			for _, id := range []string{"m1", "m2", "m3"} {
				if row := mustFind(t, db.Reader, id); len(row.Deliveries) != 1 || row.Body != "x" || row.Stage() != bridge.StageDurable {
					t.Errorf("%s after the fault: %+v", id, row)
				}
			}
		})
	}
}

func TestSTO_14_AConflictingIdentityStaysWhereItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	appendAll(t, db, note("m1", "a", "mine", 1, "b"), note("m2", "a", "x", 2, "b"))
	inStore(t, path, `INSERT INTO archived_messages SELECT *, 'old', 5 FROM messages`, `UPDATE archived_messages SET body = 'another' WHERE id = 'm1'`)
	if _, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 10, Limit: 10}); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for query, want := range map[string]string{
		"SELECT group_concat(id || body) FROM messages":                                      "m1mine",
		"SELECT group_concat(id || body) FROM (SELECT * FROM archived_messages ORDER BY id)": "m1another,m2x",
	} {
		var got string
		if err := pool.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", query, got, err, want)
		}
	}
}
