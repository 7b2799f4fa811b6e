package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"bridge/backend/platform/sqlitex"
)

// fieldSteps are the schema steps as stores in the field have them, written
// down here a second time on purpose: the upgrades must work on those, not only
// on stores of our own making.
var fieldSteps = []string{
	`CREATE TABLE messages (
		id TEXT NOT NULL, recipient TEXT NOT NULL, from_id TEXT NOT NULL, from_name TEXT NOT NULL, from_agent TEXT NOT NULL,
		to_target TEXT NOT NULL, conversation_id TEXT NOT NULL, reply_to TEXT, hop INTEGER NOT NULL, body TEXT NOT NULL,
		created_at INTEGER NOT NULL, read_at INTEGER, PRIMARY KEY (id, recipient));
	CREATE INDEX idx_messages_inbox ON messages (recipient, read_at, created_at);
	CREATE INDEX idx_messages_id ON messages (id)`,
	`CREATE TABLE archived_messages AS SELECT *, '' AS archive_reason, 0 AS archived_at FROM messages WHERE id = 'old-✓';
	UPDATE archived_messages SET archive_reason = 'expired', archived_at = 77, id = 'archived-' || id`,
	`CREATE TABLE decisions (revision INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, body TEXT NOT NULL,
		scope TEXT NOT NULL, author_id TEXT NOT NULL, author_name TEXT NOT NULL, author_agent TEXT NOT NULL, created_at INTEGER NOT NULL,
		source_message_id TEXT, supersedes TEXT);
	CREATE INDEX idx_decisions_topic ON decisions (topic, revision);
	CREATE TABLE decision_deliveries (decision_id TEXT NOT NULL, session_key TEXT NOT NULL, message_id TEXT NOT NULL, created_at INTEGER NOT NULL,
		PRIMARY KEY (decision_id, session_key));
	INSERT INTO decisions VALUES (1, 'd1', 'tøpic', 'één', '"all"', 'alice', 'alice', 'claude', 5, NULL, NULL),
		(7, 'd2', 'tøpic', 'zwei', '{"project":"/w"}', 'alice', 'alice', 'codex', 6, 'm1', 'd1');
	INSERT INTO decision_deliveries VALUES ('d1', 'claude:s', 'm1', 5)`,
	`CREATE TABLE history_documents (id TEXT PRIMARY KEY, kind TEXT, agent TEXT, at INTEGER, body TEXT, folded TEXT, link TEXT, message TEXT, job TEXT, run TEXT, session TEXT, cursor TEXT);
	CREATE TABLE history_cursors (source TEXT PRIMARY KEY, cursor TEXT);
	CREATE TABLE history_files (path TEXT PRIMARY KEY, kind TEXT, agent TEXT, session TEXT, cwd TEXT, child TEXT, checked INTEGER);
	CREATE TABLE history_tags (id TEXT, type TEXT, value TEXT, PRIMARY KEY (id, type, value));
	CREATE TABLE history_sessions (alias TEXT PRIMARY KEY, session TEXT, job TEXT);
	CREATE TABLE history_pending (id TEXT, body TEXT, from_agent TEXT, from_name TEXT, from_id TEXT, recipient TEXT, to_target TEXT, created_at INTEGER, PRIMARY KEY (id, recipient));
	CREATE TRIGGER history_messages AFTER INSERT ON messages BEGIN
		INSERT OR REPLACE INTO history_pending VALUES (NEW.id, NEW.body, NEW.from_agent, NEW.from_name, NEW.from_id, NEW.recipient, NEW.to_target, NEW.created_at); END;
	CREATE VIRTUAL TABLE history_fts USING fts5 (body, content = 'history_documents');
	INSERT INTO history_documents (id, kind, body) VALUES ('h1', 'message', 'Grüße aus dem Archiv'), ('h2', 'run', 'second');
	INSERT INTO history_fts (rowid, body) SELECT rowid, body FROM history_documents;
	INSERT INTO history_tags VALUES ('h1', 'topic', '✓')`,
	`CREATE TABLE session_bindings (identity TEXT, session_id TEXT, learned_at INTEGER, PRIMARY KEY (identity, session_id));
	INSERT INTO session_bindings VALUES ('peer-1', 'session-1', 3)`,
	`CREATE TABLE peer_names (identity TEXT, name TEXT, session_id TEXT, agent TEXT, learned_at INTEGER, PRIMARY KEY (identity, name));
	CREATE TABLE peer_name_owners (name TEXT PRIMARY KEY, identity TEXT);
	INSERT INTO peer_names VALUES ('peer-1', 'náme''s', 'session-1', 'claude', 3);
	INSERT INTO peer_name_owners VALUES ('náme''s', 'peer-1')`,
	`CREATE TABLE job_delivery_routes (id TEXT PRIMARY KEY, recipient TEXT NOT NULL, consumed_at INTEGER);
	INSERT INTO job_delivery_routes VALUES ('j1', 'bob', NULL)`,
	`CREATE TABLE conversations (id TEXT PRIMARY KEY, agent TEXT, session TEXT, parent TEXT, project TEXT, job TEXT, kind TEXT);
	CREATE TABLE conversation_sources (id TEXT PRIMARY KEY, path TEXT, conversation TEXT, format TEXT, generation INTEGER, offset INTEGER, identity TEXT, anchor TEXT, checked INTEGER);
	CREATE TABLE conversation_records (id INTEGER PRIMARY KEY, source TEXT, generation INTEGER, offset INTEGER, conversation TEXT, at INTEGER, raw BLOB, body TEXT, part TEXT, UNIQUE (source, generation, offset));
	CREATE TRIGGER records_no_update BEFORE UPDATE ON conversation_records BEGIN SELECT RAISE(ABORT, 'append-only'); END;
	CREATE TRIGGER records_no_delete BEFORE DELETE ON conversation_records BEGIN SELECT RAISE(ABORT, 'append-only'); END;
	CREATE TABLE conversation_parts (source TEXT, part TEXT, revision INTEGER, offset INTEGER, PRIMARY KEY (source, part));
	CREATE TABLE conversation_projects (project TEXT PRIMARY KEY, checked INTEGER);
	CREATE TABLE conversation_bindings (session TEXT, agent TEXT, cwd TEXT, job TEXT, pending TEXT, PRIMARY KEY (session, agent));
	CREATE TABLE conversation_envelopes (id INTEGER PRIMARY KEY, message TEXT, recipient TEXT, UNIQUE (message, recipient));
	INSERT INTO conversation_records VALUES (9, 'src', 1, 0, 'c', 4, x'00ff80fe', 'body', NULL)`,
	`CREATE TABLE peer_last_seen (name TEXT PRIMARY KEY, seen_at INTEGER);
	INSERT INTO peer_last_seen VALUES ('náme''s', 12)`,
}

// fieldRows are in every version: messages with awkward text, a read one, and
// tables that nobody knows, with blobs and a reference.
const fieldRows = `
	INSERT INTO messages VALUES
		('old-✓', 'bob', 'alice', 'älice', 'claude', '@bob', 'c1', NULL, 1, 'zero' || char(0) || 'byte 🙂', 1000, NULL),
		('m1', 'bob', 'alice', 'älice', 'claude', '@all', 'c1', 'old-✓', 2, '多言語 "quoted" ''text''', 2000, 2500),
		('m1', 'carol', 'alice', 'älice', 'claude', '@all', 'c1', 'old-✓', 2, '多言語 "quoted" ''text''', 2000, NULL);
	CREATE TABLE "unknown ""table" (k INTEGER PRIMARY KEY, data BLOB);
	INSERT INTO "unknown ""table" VALUES (1, x'000102ff'), (5, NULL), (6, 1.5);
	CREATE TABLE unknown_child (parent INTEGER REFERENCES "unknown ""table" (k), note);
	INSERT INTO unknown_child VALUES (5, 'x')`

// buildField makes a store of a version as the field has it. Version 0 has the
// first table without a number.
func buildField(t testing.TB, path string, version int) {
	t.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_pragma=journal_mode(WAL)"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := []string{fieldSteps[0], fieldRows}
	if version > 1 {
		scripts = append(scripts, fieldSteps[1:version]...)
	}
	scripts = append(scripts, fmt.Sprintf("PRAGMA user_version = %d", version))
	for _, script := range scripts {
		if _, err := pool.Exec(script); err != nil {
			t.Fatalf("building version %d: %v", version, err)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents returns every row of every table as SQL literals, by table. The
// tables that keep a virtual table's index are its own business.
func contents(t testing.TB, path string) map[string]string {
	t.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tables := map[string]string{}
	for _, name := range column(t, pool, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'history_fts%'") {
		var cells []string
		for _, c := range column(t, pool, "SELECT name FROM pragma_table_info('"+strings.ReplaceAll(name, "'", "''")+"')") {
			cells = append(cells, "quote(CAST("+sqlitex.QuoteName(c)+" AS BLOB)) || typeof("+sqlitex.QuoteName(c)+")")
		}
		tables[name] = strings.Join(column(t, pool, "SELECT "+strings.Join(cells, " || ',' || ")+" AS row FROM "+sqlitex.QuoteName(name)+" ORDER BY row"), "\n")
	}
	return tables
}

func column(t testing.TB, pool *sql.DB, query string) []string {
	t.Helper()
	var values []string
	rows, err := pool.Query(query)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var value string
		err := rows.Scan(&value)
		values = append(values, value)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// checkWhole fails unless the database is sound.
func checkWhole(t testing.TB, path string) (version int) {
	t.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if verdict := column(t, pool, "PRAGMA integrity_check"); len(verdict) != 1 || verdict[0] != "ok" {
		t.Errorf("integrity_check: %v", verdict)
	}
	if broken := column(t, pool, "SELECT \"table\" FROM pragma_foreign_key_check"); len(broken) != 0 {
		t.Errorf("foreign_key_check: %v", broken)
	}
	if err := pool.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}
