package store

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/decision"
	"bridge/backend/platform/sqlitex"
)

// oddScopes are scopes that this build cannot read, as a damage or a newer
// release leaves them.
var oddScopes = map[string]struct {
	stored string
	newer  bool
}{
	"empty":              {``, false},
	"cut off":            {`{"project":"/w`, false},
	"a list":             {`["bob"]`, false},
	"no address":         {`{"sessions":[]}`, false},
	"an empty address":   {`{"sessions":["bob",""]}`, false},
	"no folder":          {`{"project":""}`, false},
	"null":               {`null`, false},
	"nothing in it":      {`{}`, false},
	"bytes":              {"\xff\xfe", false},
	"a member twice":     {`{"project":"/a","project":"/b"}`, false},
	"another member":     {`{"team":"core"}`, true},
	"one member more":    {`{"project":"/w","except":["bob"]}`, true},
	"two at once":        {`{"project":"/w","sessions":["bob"]}`, true},
	"another word":       {`"everybody"`, true},
	"a member of a kind": {`{"project":{"name":"w"}}`, true},
}

// insertOdd puts a revision of the topic with that scope into the store.
func insertOdd(t testing.TB, path, id, topic, scope string) {
	t.Helper()
	inStore(t, path, "INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at, source_message_id, supersedes) VALUES ('"+
		id+"', '"+topic+"', 'odd', '"+strings.ReplaceAll(scope, "'", "''")+"', 'x', 'x', 'claude', 5, NULL, NULL)")
}

func TestSTO_18_OneUnreadableDecisionDisablesOnlyItself(t *testing.T) {
	for name, odd := range oddScopes {
		t.Run("STO-18 DEC-05 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()))
			decide(t, db, revision("x1", "other", "else", 2, decision.AllSessions()))
			insertOdd(t, path, "odd", "db", odd.stored)

			if got := idsOf(t, db.Reader, decision.Lookup{}); !cmp.Equal(got, []string{"x1"}) {
				t.Errorf("in force are %v; want x1: what the odd revision replaced does not come back", got)
			}
			if got := idsOf(t, db.Reader, decision.Lookup{History: true}); !cmp.Equal(got, []string{"x1", "d1"}) {
				t.Errorf("the history is %v; want x1 and d1", got)
			}
			if inForce, err := db.UnreadableDecisions(t.Context(), ""); err != nil || len(inForce) != 1 || inForce[0].Key != "odd" {
				t.Errorf("in force, and cannot be read: %+v, %v; want the odd one", inForce, err)
			}
			after := decide(t, db, revision("d3", "db", "three", 9, decision.AllSessions()))
			if after.Supersedes == nil || *after.Supersedes != "odd" {
				t.Errorf("the next revision supersedes %v; want the odd one", after.Supersedes)
			}
			if again := decide(t, db, revision("d3", "db", "three", 9, decision.AllSessions())); again.ID != "d3" {
				t.Errorf("recorded twice: %+v", again)
			}
			if got := idsOf(t, db.Reader, decision.Lookup{}); !cmp.Equal(got, []string{"d3", "x1"}) {
				t.Errorf("in force are %v; want d3 and x1", got)
			}
			if inForce, err := db.UnreadableDecisions(t.Context(), ""); err != nil || len(inForce) != 0 {
				t.Errorf("in force, and cannot be read: %+v, %v; a later one replaced it", inForce, err)
			}
			if other, err := db.UnreadableDecisions(t.Context(), "other"); err != nil || len(other) != 0 {
				t.Errorf("of another topic: %+v, %v", other, err)
			}
			problems, err := db.UnreadableDecisions(t.Context(), "db")
			if err != nil || len(problems) != 1 || problems[0].Key != "odd" || problems[0].Newer != odd.newer || !problems[0].Replaced || problems[0].Why == "" {
				t.Errorf("UnreadableDecisions = %+v, %v", problems, err)
			}
			if stored := storedScopes(t, path, "odd"); stored != odd.stored {
				t.Errorf("the stored scope is %q now", stored)
			}
		})
	}
}

// A scope is read whatever limits were in force when it was recorded.
func TestSTO_18_StoredScopesAreReadWidely(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	many := `{"sessions":["` + strings.Repeat(`name","`, 5000) + `last"]}`
	for id, scope := range map[string]string{"bare": "all", "quoted": `"all"`, "spaced": ` { "project" : "/w" } `, "relative": `{"project":"w"}`, "many": many, "null": `{"project":"/w","sessions":null}`} {
		insertOdd(t, path, id, "topic "+id, scope)
	}
	if got := idsOf(t, db.Reader, decision.Lookup{}); len(got) != 6 {
		t.Errorf("in force are %v", got)
	}
}

func idsOf(t testing.TB, r *Reader, lookup decision.Lookup) (ids []string) {
	t.Helper()
	found, err := r.Decisions(t.Context(), lookup)
	if err != nil {
		t.Fatalf("Decisions(%+v): %v", lookup, err)
	}
	for _, rev := range found {
		ids = append(ids, rev.ID)
	}
	return ids
}

func storedScopes(t testing.TB, path, id string) string {
	t.Helper()
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var scope string
	err = reader.read(t.Context(), func(v view) error {
		rows, err := v.Query(t.Context(), "SELECT scope FROM decisions WHERE id = ?", id)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&scope) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func TestSTO_18_EachJSONColumnIsLookedThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()))
	insertOdd(t, path, "odd", "db", "")
	insertOdd(t, path, "new", "db", `{"team":"core"}`)
	inStore(t, path, `INSERT INTO session_bindings VALUES ('["claude",1,"x","/w","name"]', 's1', 1), ('[cut', 's2', 1), ('peer-id', 's3', 1);
		INSERT INTO peer_names VALUES ('["claude",1]', 'n', 's', 'claude', 1);
		INSERT INTO peer_name_owners VALUES ('n', '[]]')`)
	got, err := UnreadableRows(t.Context(), path, true)
	want := []UnreadableRow{
		{Table: "decisions", Key: "new", Topic: "db", Why: "its scope cannot be read", Newer: true},
		{Table: "decisions", Key: "odd", Topic: "db", Why: "its scope cannot be read", Replaced: true},
		{Table: "session_bindings", Key: "row 2", Why: "identity is not valid JSON"},
		{Table: "peer_names", Key: "row 1", Why: "identity has an unknown shape", Newer: true},
		{Table: "peer_name_owners", Key: "row 1", Why: "identity is not valid JSON"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// What no question needs to mean something is read as what is nearest to it.
func TestSTO_18_OddValuesShutOutNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"), note("m2", "alice", "more", 1001, "bob"))
	if err := db.SavePeer(t.Context(), Peer{ID: "alice", Name: "alice", Agent: "claude", SessionID: "s", SeenAt: 5}); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, `INSERT INTO delivery_stages (message_id, recipient, handed_at, handed_by, woken_at) VALUES ('m1', 'bob', 'long ago', 7, x'00ff');
		UPDATE messages SET hop = 'many', created_at = 'then' WHERE id = 'm1';
		INSERT INTO messages VALUES (x'ff00', 'bob', 'a', 'a', 'claude', 'bob', 'c', NULL, 0, 'no name', 1000, NULL);
		UPDATE peer_names SET learned_at = 'once', agent = x'01';
		INSERT INTO peer_names VALUES (NULL, NULL, NULL, NULL, 'x');
		INSERT INTO session_bindings VALUES (NULL, 's9', 'x');
		UPDATE peer_last_seen SET seen_at = 'yesterday'`)
	if rows, err := db.Recent(t.Context(), 10); err != nil || len(rows) != 2 {
		t.Errorf("Recent: %d rows, %v", len(rows), err)
	}
	if unread, err := db.Unread(t.Context(), "bob", 10, nil); err != nil || len(unread) != 3 {
		t.Errorf("Unread: %d, %v", len(unread), err)
	}
	if peers, err := db.Peers(t.Context()); err != nil || len(peers) != 1 {
		t.Errorf("Peers: %+v, %v", peers, err)
	}
	if err := db.ClaimByName(t.Context(), Peer{ID: "bob", Name: "bob", Agent: "claude", SessionID: "s9"}); err != nil {
		t.Error(err)
	}
	if marks, err := db.Expire(t.Context(), ExpireRule{TTLBefore: 1 << 60, Limit: 100}); err != nil || len(marks) != 1 {
		t.Errorf("Expire moved %v, %v; want m2 alone", marks, err)
	}
}
