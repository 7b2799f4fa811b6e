package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/decision"
	"bridge/backend/storage/store/upgrade"
)

// TestVER_04_DecisionsOfBothStoresAreKept: the store was upgraded, and got
// decisions of its own, while the sidecar was away.
func TestVER_04_DecisionsOfBothStoresAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 2)
	db := openDeferred(t, path, 2)
	decide(t, db, revision("first", "one", "so", 100, decision.AllSessions()), "claude:s1")
	decide(t, db, revision("second", "two", "so", 200, decision.AllSessions()), "claude:s1")
	mustClose(t, db)
	sidecar, err := os.ReadFile(upgrade.SidecarPath(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(upgrade.SidecarPath(path)); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, path)
	decide(t, db, revision("own", "three", "so", 300, decision.AllSessions()), "claude:s1")
	mustClose(t, db)
	for _, when := range []string{"carried over", "carried over again, as after a crash before it was put away"} {
		if err := os.WriteFile(upgrade.SidecarPath(path), sidecar, 0o600); err != nil {
			t.Fatal(err)
		}
		db = openAt(t, path)
		found, err := db.Decisions(t.Context(), decision.Lookup{History: true})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, rev := range found {
			ids = append(ids, rev.ID)
			if !rev.Current {
				t.Errorf("%s: %s is not in force", when, rev.ID)
			}
		}
		if diff := cmp.Diff([]string{"second", "first", "own"}, ids); diff != "" {
			t.Errorf("%s, the newest first:\n%s", when, diff)
		}
		if receipts, err := db.Delivered(t.Context(), "claude:s1"); err != nil || len(receipts) != 3 {
			t.Errorf("%s: told of %v, %v", when, receipts, err)
		}
		mustClose(t, db)
	}
}

// TestVER_04_WhatWasRetiredIsNeverReplaced: the clock gives two of them one name.
func TestVER_04_WhatWasRetiredIsNeverReplaced(t *testing.T) {
	path, want := deferredStore(t, 3)
	kept := filepath.Join(filepath.Dir(path), ".migration-snapshots", "compat.db.carried-"+testTime.UTC().Format("20060102T150405.000Z"))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{kept, kept + "-2"} {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := openAt(t, path)
	if diff := cmp.Diff(want, answers(t, db.Reader)); diff != "" {
		t.Errorf("after the upgrade (-deferred +upgraded):\n%.2000s", diff)
	}
	for _, name := range []string{kept, kept + "-2"} {
		if data, err := os.ReadFile(name); err != nil || string(data) != name {
			t.Errorf("%s holds %.40q, %v", name, data, err)
		}
	}
	checkWhole(t, kept+"-3")
	if _, err := os.Lstat(upgrade.SidecarPath(path)); !os.IsNotExist(err) {
		t.Errorf("the sidecar is still in place: %v", err)
	}
}

// TestVER_04_ANoticeThatWasReadAndArchivedDoesNotComeAgain: the outbox is empty
// once its notices are with their recipients.
func TestVER_04_ANoticeThatWasReadAndArchivedDoesNotComeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 2)
	db := openDeferred(t, path, 2)
	decide(t, db, revision("d1", "one", "so", 100, decision.AllSessions()), "claude:s1")
	mustClose(t, db)
	inStore(t, path, "DELETE FROM messages WHERE id = 'n-d1'") // as the archive leaves the store
	db = openDeferred(t, path, 2)
	if unread, err := db.Unread(t.Context(), "peer-claude:s1", 10, nil); err != nil || len(unread) != 0 {
		t.Errorf("the next broker hands out %+v, %v", unread, err)
	}
	mustClose(t, db)
	if unread, err := openAt(t, path).Unread(t.Context(), "peer-claude:s1", 10, nil); err != nil || len(unread) != 0 {
		t.Errorf("after the upgrade it is handed out: %+v, %v", unread, err)
	}
}

// TestVER_04_NoticesThatWaitInTheOutboxAreCarriedOver: the broker that recorded
// their decisions died before it handed them on, and no older program is left.
func TestVER_04_NoticesThatWaitInTheOutboxAreCarriedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 2)
	mustClose(t, openDeferred(t, path, 2))
	inStore(t, upgrade.SidecarPath(path), `INSERT INTO outbox VALUES
		('n1', 'peer-claude:s1', 'alice', 'name-alice', 'claude', 'target', 'c1', NULL, 1, 'so', 9400, NULL),
		('n2', 'peer-claude:s1', 'alice', 'name-alice', 'claude', 'target', 'c2', NULL, 1, 'or so', 9500, NULL)`)
	unread, err := openAt(t, path).Unread(t.Context(), "peer-claude:s1", 10, nil)
	if err != nil || len(unread) != 2 || unread[0].ID != "n1" || unread[1].ID != "n2" {
		t.Errorf("notices: %+v, %v", unread, err)
	}
	requireCarried(t, path)
}
