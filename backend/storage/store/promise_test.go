package store

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

func lacksIn(t testing.TB, path string, promise schema.Promise) (found []string) {
	t.Helper()
	lacks, err := schema.Lacks(t.Context(), path, promise, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, lack := range lacks {
		found = append(found, lack.String())
	}
	return found
}

func TestSTO_18_AStoreOfEachVersionHasWhatItPromises(t *testing.T) {
	for version := range schema.Version + 1 {
		t.Run(fmt.Sprintf("STO-18 version %d of the field, before and after its upgrade", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			buildField(t, path, version)
			if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
				t.Errorf("before: %v", lacks)
			}
			if err := openAt(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
				t.Errorf("after: %v", lacks)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "bridge.db")
	openAt(t, path)
	if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
		t.Errorf("of ours: %v", lacks)
	}
}

func TestSTO_18_WhatIsLackingIsNamed(t *testing.T) {
	for script, want := range map[string]string{
		"DROP TABLE decision_deliveries":            "the table decision_deliveries",
		"DROP TABLE delivery_stages":                "the table delivery_stages",
		"DROP TABLE conversations":                  "the table conversations",
		"DROP TABLE history_fts_config":             "the table history_fts_config",
		"DROP TRIGGER decisions_keep":               "the trigger decisions_keep of the table decisions",
		"DROP TRIGGER decisions_stay":               "the trigger decisions_stay of the table decisions",
		"DROP TRIGGER decision_deliveries_stay":     "the trigger decision_deliveries_stay of the table decision_deliveries",
		"DROP TRIGGER conversation_records_keep":    "the trigger conversation_records_keep of the table conversation_records",
		"DROP INDEX messages_unread":                "the index messages_unread of the table messages",
		"DROP INDEX archived_by_id":                 "the index archived_by_id of the table archived_messages",
		"ALTER TABLE peer_names DROP COLUMN agent":  "the column peer_names.agent",
		"ALTER TABLE decisions RENAME scope TO for": "the column decisions.scope",
		`DROP TRIGGER decisions_stay; CREATE TRIGGER decisions_stay BEFORE DELETE ON decisions WHEN 0
			BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END`: "the trigger decisions_stay of the table decisions",
		`DROP INDEX messages_unread; CREATE INDEX messages_unread ON messages (body)`:                                                "the index messages_unread of the table messages",
		`CREATE TABLE copy AS SELECT * FROM delivery_stages; DROP TABLE delivery_stages; ALTER TABLE copy RENAME TO delivery_stages`: "the key (message_id, recipient) of the table delivery_stages",
	} {
		t.Run("STO-18 "+want, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			if err := openAt(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			inStore(t, path, script)
			if diff := cmp.Diff([]string{want}, lacksIn(t, path, schema.PrimaryStore)); diff != "" {
				t.Errorf("after %s:\n%s", script, diff)
			}
		})
	}
}

// Other names for the same are the same.
func TestSTO_18_NamesDoNotMatter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "DROP INDEX messages_unread; CREATE INDEX idx ON messages (recipient, read_at, created_at, id)",
		"DROP TRIGGER decisions_stay; create trigger \"no delete\" BEFORE DELETE ON \"decisions\" FOR EACH ROW\nBEGIN SELECT RAISE(FAIL, 'never'); END")
	if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
		t.Errorf("%v", lacks)
	}
}

// TestSTO_18_WhatHoldsNoDataIsMadeAnew: an index, a trigger or a key that is gone
// is back when the store was opened.
func TestSTO_18_WhatHoldsNoDataIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "DROP INDEX messages_unread; CREATE INDEX messages_unread ON messages (body)", "DROP TRIGGER decisions_stay; DROP TRIGGER decisions_keep",
		"CREATE TABLE copy AS SELECT * FROM delivery_stages; DROP TABLE delivery_stages; ALTER TABLE copy RENAME TO delivery_stages")
	openAt(t, path)
	if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
		t.Errorf("after opening: %v", lacks)
	}
}

func TestSTO_18_TheComparisonIsQuick(t *testing.T) {
	if _, err := schema.WholePrimary(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bridge.db")
	openAt(t, path)
	// A machine may be busy with something else for a while, not each time.
	best := time.Hour
	for range 5 {
		start := time.Now()
		lacksIn(t, path, schema.PrimaryStore)
		best = min(best, time.Since(start))
	}
	if best > time.Second {
		t.Errorf("one comparison took %v at the best", best)
	}
}

// TestSTO_18_AStoreThatLostATableServesWhatItCan: what is lost is neither rebuilt
// as if nothing had happened nor does it keep the rest from going on.
func TestSTO_18_AStoreThatLostATableServesWhatItCan(t *testing.T) {
	for _, table := range []string{
		"archived_messages", "decisions", "decision_deliveries", "delivery_stages", "message_peers", "message_peers_upto",
		"session_bindings", "peer_names", "peer_name_owners", "peer_last_seen", "job_delivery_routes",
	} {
		t.Run("STO-18 "+table, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			appendAll(t, db, note("m1", "alice", "before", 1000, "bob"))
			decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()), "bob")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			inStore(t, path, "DROP TABLE "+table)
			for round := range 2 { // and once more after a restart
				db := openAt(t, path)
				id := fmt.Sprint("m", round+2)
				reply := note(id, "bob", "after", 2000, "alice")
				reply[0].ReplyTo = "m1"
				appendAll(t, db, reply)
				decide(t, db, revision("d"+id, "style", "tabs", 5, decision.AllSessions()), "carol")
				if got := idsOf(t, db.Reader, decision.Lookup{Topic: "style"}); len(got) != 1 {
					t.Errorf("decisions: %v", got)
				}
				if receipts, err := db.Delivered(t.Context(), "carol"); err != nil || !receipts.HasMessage("d"+id) {
					t.Errorf("receipts: %v, %v", receipts, err)
				}
				if err := db.SavePeer(t.Context(), Peer{ID: "p", Name: "n", Agent: "claude", SessionID: "s", SeenAt: 7}); err != nil {
					t.Error(err)
				}
				if peers, err := db.Peers(t.Context()); err != nil || len(peers) != 1 {
					t.Errorf("peers: %v, %v", peers, err)
				}
				if err := db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{{MessageID: id, Recipient: "alice", At: 9, Evidence: "read"}}); err != nil {
					t.Error(err)
				}
				if row := mustFind(t, db.Reader, id); row.Stage() != bridge.StageConsumed {
					t.Errorf("%s is %s", id, row.Stage())
				}
				if _, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 1 << 60, Limit: 10}); err != nil {
					t.Error(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if lacks := lacksIn(t, path, schema.PrimaryStore); len(lacks) != 1 || lacks[0] != "the table "+table {
				t.Errorf("the store lacks %v", lacks)
			}
			_, err := transfer.ArchiveMessages(t.Context(), path, filepath.Join(filepath.Dir(path), "archive.db"), transfer.ArchiveRule{Before: 1, Now: 1})
			if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(fmt.Sprint(err), "lacks the table "+table) {
				t.Errorf("archiving: %v", err)
			}
		})
	}
}

func TestSTO_18_AStoreThatLostAColumnIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "ALTER TABLE decisions RENAME scope TO reach")
	_, err := Open(t.Context(), path, Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(fmt.Sprint(err), "the column decisions.scope.") {
		t.Errorf("Open: %v", err)
	}
}

func TestSTO_18_WhatNoBridgeWritesIsRefused(t *testing.T) {
	for pragma, want := range map[string]string{
		"user_version = -1":            "has schema version -1, which no Bridge writes",
		"application_id = 252006674":   "belongs to the program with the application id 252006674 (0x0f055112)", // fossil's
		"application_id = -2147483648": "(0x80000000)",
	} {
		path := filepath.Join(t.TempDir(), "bridge.db")
		if err := openAt(t, path).Close(); err != nil {
			t.Fatal(err)
		}
		inStore(t, path, "PRAGMA "+pragma)
		_, openErr := Open(t.Context(), path, Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		_, readErr := OpenReader(t.Context(), path)
		for _, err := range []error{openErr, readErr} {
			if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %v", pragma, err)
			}
		}
	}
}

// TestVER_01_ComponentsOfOtherProgramsAreNoReasonToRefuse: a store of the field has
// the table of components with rows of its own; ours comes beside them.
func TestVER_01_ComponentsOfOtherProgramsAreNoReasonToRefuse(t *testing.T) {
	for name, rows := range map[string]string{"others": "INSERT INTO bridge_components VALUES ('worktree_leases', 2)", "none": ""} {
		path := filepath.Join(t.TempDir(), "bridge.db")
		buildField(t, path, schema.Version)
		inStore(t, path, "CREATE TABLE bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL);"+rows)
		openAt(t, path)
		if lacks := lacksIn(t, path, schema.PrimaryStore); lacks != nil {
			t.Errorf("%s: %v", name, lacks)
		}
	}
}
