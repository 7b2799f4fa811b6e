package maintain

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/store"
)

// wound is one damage to a store, generated from its own schema.
type wound struct {
	script string
	table  string // that it is done to
}

// woundsOf drops, empties and rewrites every table, index and trigger of the
// database in turn, and every column that holds JSON.
func woundsOf(t *testing.T, path string) (all []wound) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	list := func(query string) [][3]string { return threes(t, pool, query) }
	for _, row := range list("SELECT type, name, tbl_name FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid") {
		kind, name, table := row[0], row[1], row[2]
		all = append(all, wound{"DROP " + kind + " " + name, table})
		switch kind {
		case "index":
			all = append(all, wound{"DROP INDEX " + name + "; CREATE INDEX " + name + " ON " + table + " (1)", table},
				wound{"DROP INDEX " + name + "; CREATE INDEX other ON " + table + " (1)", table})
		case "trigger":
			all = append(all, wound{"DROP TRIGGER " + name + "; CREATE TRIGGER " + name + " BEFORE DELETE ON " + table + " WHEN 0 BEGIN SELECT 1; END", table})
		}
	}
	for _, row := range list("SELECT name, ifnull((SELECT group_concat(sql, ';') || ';' FROM sqlite_schema g WHERE g.type = 'trigger' AND g.tbl_name = t.name), ''), '' FROM sqlite_schema t WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'history_%'") {
		table, triggers := row[0], row[1]
		var rows int
		if err := pool.QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows == 0 {
			continue
		}
		script := "DELETE FROM " + table
		if triggers != "" {
			script = "DROP TRIGGER " + table + "_stay; DROP TRIGGER " + table + "_keep; " + script + "; " + triggers
		}
		all = append(all, wound{script, table})
	}
	columns := "SELECT t.name, c.name, '' FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'history_fts%'"
	for _, row := range list(columns) {
		all = append(all, wound{"ALTER TABLE " + row[0] + " RENAME " + row[1] + " TO gone", row[0]})
	}
	return append(all, valueWounds()...)
}

// valueWounds rewrite values that hold JSON.
func valueWounds() (all []wound) {
	for _, bad := range []string{"", "[1", "{}", "null", `{"sessions":[]}`, `{"team":1}`, "\x01"} {
		all = append(all, wound{"DROP TRIGGER decisions_keep; UPDATE decisions SET scope = '" + bad + "' WHERE revision = 2", "decisions"},
			wound{"INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at) VALUES ('odd', 'odd', 'x', '" + bad + "', 'p', 'p', 'claude', 1)", "decisions"})
	}
	for _, table := range []string{"session_bindings", "peer_names", "peer_name_owners"} {
		for _, bad := range []string{"[", "[1", "[]", `["claude",1]`} {
			all = append(all, wound{"UPDATE " + table + " SET identity = '" + bad + "'", table})
		}
	}
	return all
}

// threes are the rows of a query with three columns of text.
func threes(t *testing.T, pool *sql.DB, query string) (found [][3]string) {
	t.Helper()
	rows, err := pool.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row [3]string
		if err := rows.Scan(&row[0], &row[1], &row[2]); err != nil {
			t.Fatal(err)
		}
		found = append(found, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// woundedHome is a home with a row in what Bridge writes.
func woundedHome(t *testing.T) Maintenance {
	t.Helper()
	c := newHome(t)
	db := openStore(t, c)
	for i, scope := range []decision.Scope{decision.AllSessions(), decision.ProjectOf("/work")} {
		rev := decision.Revision{ID: fmt.Sprint("d", i), Topic: fmt.Sprint("topic ", i), Text: "x", Scope: scope, Author: bridge.Address{ID: "p", Name: "p", Agent: bridge.Claude}, CreatedAt: 1}
		if _, _, err := db.RecordDecision(t.Context(), rev, func(decision.Revision) []decision.Notification { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SavePeer(t.Context(), store.Peer{ID: "p", Name: "p", Agent: bridge.Claude, SessionID: "s", SeenAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mustBackup(t, c)
	return c
}

// TestSTO_18_GeneratedDamage: of some 250 stores, each damaged at one place of its
// schema or in one JSON value, the doctor names each and changes none; whatever
// can still serve does, and what cannot says in one sentence why.
func TestSTO_18_GeneratedDamage(t *testing.T) {
	maintenance := woundedHome(t)
	wounds := woundsOf(t, maintenance.Home.DB())
	if len(wounds) < 200 {
		t.Fatalf("only %d damages", len(wounds))
	}
	for _, wound := range wounds {
		t.Run("STO-18 "+wound.script, func(t *testing.T) {
			t.Parallel()
			c := copied(t, maintenance)
			makeDatabase(t, c, "bridge.db", wound.script)
			before := listing(t, c.Home.Dir())
			r := report(t, c)
			named := slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Path == "bridge.db" && f.Code != check.DatabaseOlder })
			isComponent := wound.table == "bridge_components" || wound.table == "delivery_ways" || wound.table == "team_decisions" || wound.table == "withdrawn_decisions" // like a store before its upgrade
			if !named && (!isComponent || len(r.Findings) == 0) {
				t.Errorf("the doctor says %v", r.Findings)
			}
			for path, was := range listing(t, c.Home.Dir()) {
				if before[path] != was {
					t.Errorf("the look changed %s", path)
				}
			}
			serveWounded(t, c, wound)
		})
	}
}

// serveWounded opens the store as a broker does and lets it do what everybody needs.
func serveWounded(t *testing.T, c Maintenance, damage wound) {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, c.Home.DB(), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		mayRefuse := strings.HasPrefix(damage.script, "ALTER TABLE") || damage.table == "messages" && strings.HasPrefix(damage.script, "DROP table")
		known := bridge.CodeOf(err) == bridge.Storage || bridge.CodeOf(err) == bridge.Unsupported
		if !mayRefuse || !known || !strings.Contains(err.Error(), filepath.Base(c.Home.DB())) {
			t.Errorf("it does not serve: %v", err)
		}
		return
	}
	defer db.Close()
	message := bridge.Message{ID: "after", Recipient: "bob", From: bridge.Address{ID: "p", Name: "p", Agent: bridge.Claude}, To: "bob", ConversationID: "c", ReplyTo: "m1", Body: "after the damage", CreatedAt: 9000}
	_, _, sendErr := db.Append(ctx, []bridge.Message{message})
	unread, unreadErr := db.Unread(ctx, "bob", 1000, nil)
	_, recentErr := db.Recent(ctx, 100)
	_, decisionsErr := db.Decisions(ctx, decision.Lookup{})
	_, deliveredErr := db.Delivered(ctx, "claude:s")
	_, peersErr := db.Peers(ctx)
	rev := decision.Revision{ID: "after", Topic: "after", Text: "x", Scope: decision.AllSessions(), Author: message.From, CreatedAt: 2}
	_, _, decideErr := db.RecordDecision(ctx, rev, func(decision.Revision) []decision.Notification { return nil })
	for what, err := range map[string]error{
		"send": sendErr, "unread": unreadErr, "recent": recentErr, "decisions": decisionsErr, "delivered": deliveredErr, "peers": peersErr, "decide": decideErr,
		"save": db.SavePeer(ctx, store.Peer{ID: "q", Name: "q", Agent: bridge.Codex, SessionID: "s2", SeenAt: 5}),
		"mark": db.Record(ctx, bridge.StageHanded, []mail.Mark{{MessageID: "after", Recipient: "bob", At: 9, Evidence: "x"}}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if unread != nil && len(unread) == 0 || unread[len(unread)-1].ID != "after" {
		t.Errorf("the message is not among %d unread", len(unread))
	}
}
