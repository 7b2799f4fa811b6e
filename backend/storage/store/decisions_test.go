package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/sqlitex"
)

func revision(id, topic, text string, at int64, scope decision.Scope) decision.Revision {
	return decision.Revision{
		ID: id, Topic: topic, Text: text, Scope: scope, CreatedAt: at,
		Author: bridge.Address{ID: "alice", Name: "name-alice", Agent: bridge.Claude},
	}
}

// tell makes a pure notify function for the given sessions.
func tell(keys ...string) func(decision.Revision) []decision.Notification {
	return func(rev decision.Revision) []decision.Notification {
		var list []decision.Notification
		for _, key := range keys {
			list = append(list, decision.Notification{DecisionID: rev.ID, SessionKey: key, Message: note("n-"+rev.ID, "alice", rev.Text, rev.CreatedAt, "peer-"+key)[0]})
		}
		return list
	}
}

func decide(t testing.TB, db *DB, rev decision.Revision, keys ...string) decision.Revision {
	t.Helper()
	stored, _, err := db.RecordDecision(t.Context(), rev, tell(keys...))
	if err != nil {
		t.Fatalf("RecordDecision(%s): %v", rev.ID, err)
	}
	return stored
}

// inStore runs SQL on the store from outside, as another program would.
func inStore(t testing.TB, path string, scripts ...string) {
	t.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, script := range scripts {
		if _, err := pool.Exec(script); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
	}
}

func ref(s string) *string { return &s }

func TestDEC_07_ANewDecisionSupersedesTheTopicWhateverItsScope(t *testing.T) {
	db := openTest(t)
	decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()))
	decide(t, db, revision("x1", "other", "else", 2, decision.AllSessions()))
	got := decide(t, db, revision("d2", "db", "two", 3, decision.ProjectOf("/work")))
	if !got.Current || got.Supersedes == nil || *got.Supersedes != "d1" {
		t.Errorf("the second revision = %+v; want current, superseding d1", got)
	}
	decide(t, db, revision("d3", "db", "three", 4, decision.Scope{Sessions: []string{"bob"}}))

	all, err := db.Decisions(t.Context(), decision.Lookup{History: true})
	if err != nil {
		t.Fatal(err)
	}
	d1, d2, d3, x1 := revision("d1", "db", "one", 1, decision.AllSessions()), revision("d2", "db", "two", 3, decision.ProjectOf("/work")), revision("d3", "db", "three", 4, decision.Scope{Sessions: []string{"bob"}}), revision("x1", "other", "else", 2, decision.AllSessions())
	d2.Supersedes, d3.Supersedes = ref("d1"), ref("d2")
	d3.Current, x1.Current = true, true
	if diff := cmp.Diff([]decision.Revision{d3, d2, x1, d1}, all); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestDEC_07_RevisionsAndReceiptsCanNotBeChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()), "s1")
	decide(t, db, withdrawal("d2", "db", 2))
	pool, err := sql.Open("sqlite", sqlitex.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, script := range []string{
		"DELETE FROM decisions", "UPDATE decisions SET body = 'x'", "DELETE FROM decision_deliveries", "UPDATE decision_deliveries SET session_key = 'x'",
		"DELETE FROM withdrawn_decisions", "UPDATE withdrawn_decisions SET decision_id = 'd1'",
	} {
		if _, err := pool.Exec(script); err == nil {
			t.Errorf("%s was allowed", script)
		}
	}
}

func TestDEC_08_LookupIsNewestFirst(t *testing.T) {
	db := openTest(t)
	none, err := db.Decisions(t.Context(), decision.Lookup{})
	if err != nil || none == nil || len(none) != 0 {
		t.Fatalf("an empty store answers %#v, %v; want an empty list", none, err)
	}
	decide(t, db, revision("d1", "database", "Use SQLite", 1, decision.AllSessions()))
	decide(t, db, revision("d2", "style", "Tabs", 2, decision.ProjectOf("/a")))
	decide(t, db, revision("d3", "database", "Use Postgres", 3, decision.AllSessions()))
	lookups := map[string]struct {
		lookup decision.Lookup
		want   []string
	}{
		"current":       {decision.Lookup{}, []string{"d3", "d2"}},
		"history":       {decision.Lookup{History: true}, []string{"d3", "d2", "d1"}},
		"topic":         {decision.Lookup{Topic: "database"}, []string{"d3"}},
		"topic history": {decision.Lookup{Topic: "database", History: true}, []string{"d3", "d1"}},
		"query":         {decision.Lookup{Query: "sqlite", History: true}, []string{"d1"}},
		"superseded":    {decision.Lookup{Query: "sqlite"}, []string{}},
		"scope":         {decision.Lookup{Scope: &decision.Scope{Project: "/b"}}, []string{"d3"}},
	}
	for name, tt := range lookups {
		t.Run(name, func(t *testing.T) {
			found, err := db.Decisions(t.Context(), tt.lookup)
			got := []string{}
			for _, rev := range found {
				got = append(got, rev.ID)
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("Decisions: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDEC_09_AnUnknownSourceMessageBecomesNull(t *testing.T) {
	db := openTest(t)
	appendAll(t, db, note("live", "a", "x", 1000, "b"), note("old", "a", "x", 1, "b"))
	if _, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 10, Limit: 10}); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]*string{"live": ref("live"), "old": ref("old"), "unknown": nil} {
		rev := revision("d-"+source, "topic "+source, "x", 1, decision.AllSessions())
		rev.SourceMessageID = ref(source)
		if got := decide(t, db, rev); !cmp.Equal(got.SourceMessageID, want) {
			t.Errorf("source %q is kept as %v", source, got.SourceMessageID)
		}
	}
}

func TestDEC_10_RevisionReceiptsAndMessagesAreOneTransaction(t *testing.T) {
	for name, fault := range map[string]string{
		"at the second receipt": "CREATE TRIGGER fault BEFORE INSERT ON decision_deliveries WHEN NEW.session_key = 's2' BEGIN SELECT RAISE(ABORT, 'fault'); END",
		"at the second message": "CREATE TRIGGER fault AFTER INSERT ON messages WHEN NEW.recipient = 'peer-s2' BEGIN SELECT RAISE(ABORT, 'fault'); END",
		"at the revision":       "CREATE TRIGGER fault AFTER INSERT ON decisions BEGIN SELECT RAISE(ABORT, 'fault'); END",
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			inStore(t, path, fault)
			_, _, err := db.RecordDecision(ctx, revision("d1", "db", "one", 1, decision.AllSessions()), tell("s1", "s2"))
			if bridge.CodeOf(err) != bridge.Storage {
				t.Fatalf("RecordDecision with a fault: %v", err)
			}
			found, err := db.Decisions(ctx, decision.Lookup{History: true})
			if err != nil || len(found) != 0 {
				t.Errorf("a revision of a failed transaction is there: %v, %v", found, err)
			}
			if _, err := db.Find(ctx, "n-d1"); bridge.CodeOf(err) != bridge.NotFound {
				t.Errorf("a message of a failed transaction is there: %v", err)
			}
			if receipts, err := db.Delivered(ctx, "s1"); err != nil || len(receipts) != 0 {
				t.Errorf("a receipt of a failed transaction is there: %v, %v", receipts, err)
			}

			inStore(t, path, "DROP TRIGGER fault")
			if _, queued, err := db.RecordDecision(ctx, revision("d1", "db", "one", 1, decision.AllSessions()), tell("s1", "s2")); err != nil || len(queued) != 2 {
				t.Errorf("the same decision without the fault = %v, %v", queued, err)
			}
		})
	}
}

func TestDEC_12_NobodyIsToldTwice(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := Open(ctx, path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	rev := decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()), "claude:peer-1")
	if err := db.LinkDecisionReceipts(ctx, "claude:peer-1", "claude:session-1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db = openAt(t, path) // the broker came again
	for key, want := range map[string]int{"claude:peer-1": 0, "claude:session-1": 0, "claude:session-2": 1} {
		list := tell(key)(rev)
		list[0].Message.ID = "again-" + key
		queued, err := db.NotifyDecisions(ctx, list)
		if err != nil || len(queued) != want {
			t.Errorf("NotifyDecisions(%s) queued %d, %v; want %d", key, len(queued), err, want)
		}
		_, err = db.Find(ctx, "again-"+key)
		if found := err == nil; found != (want == 1) {
			t.Errorf("the message for %s: %v", key, err)
		}
		if receipts, err := db.Delivered(ctx, key); err != nil || !receipts.HasMessage("d1") {
			t.Errorf("Delivered(%s) = %v, %v", key, receipts, err)
		}
	}
	if err := db.LinkDecisionReceipts(ctx, "claude:peer-1", "claude:session-1"); err != nil {
		t.Errorf("linking again: %v", err)
	}
}

func TestARepeatedDecisionIsStoredOnce(t *testing.T) {
	db := openTest(t)
	rev := revision("d1", "db", "one", 1, decision.AllSessions())
	first := decide(t, db, rev, "s1")
	stored, queued, err := db.RecordDecision(t.Context(), rev, tell("s1", "s2"))
	if diff := cmp.Diff(first, stored); err != nil || diff != "" || len(queued) != 0 {
		t.Errorf("the same decision again: %v, queued %v (-first +again):\n%s", err, queued, diff)
	}
	rev.Text = "two"
	if _, _, err := db.RecordDecision(t.Context(), rev, tell()); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("the same id with another text: %v, want a conflict", err)
	}
}

func TestStoredScopesOfOlderLimitsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	for i, scope := range []string{`"all"`, `{"project":"/w/✓"}`, `{"sessions":["name with space"]}`} {
		inStore(t, path, fmt.Sprintf("INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at) VALUES ('d%d', 't%d', 'b', '%s', 'a', 'a', 'claude', 1)", i, i, scope))
	}
	found, err := db.Decisions(t.Context(), decision.Lookup{})
	if err != nil || len(found) != 3 || !found[2].Scope.All || found[1].Scope.Project != "/w/✓" || found[0].Scope.Sessions[0] != "name with space" {
		t.Errorf("Decisions = %+v, %v", found, err)
	}
}
