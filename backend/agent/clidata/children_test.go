package clidata

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// put writes a file below dir and gives it a time of last change.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.UnixMilli(1_000)); err != nil {
		t.Fatal(err)
	}
	return path
}

// database makes a SQLite file as the CLIs do, with a log beside it while keep
// is open.
func database(t *testing.T, path string, statements ...string) (keep *sql.DB) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

// listing is every file below dir with its size and time of last change.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all = append(all, fmt.Sprint(strings.TrimPrefix(path, dir), " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const claudeRoot, claudeKids = "s-1", "projects/-app/s-1/subagents/"

func TestCHT_10_ClaudesStoreTellsItsChildren(t *testing.T) {
	meta := func(description, more string) string {
		return fmt.Sprintf(`{"agentType":"general-purpose","description":%s,"spawnDepth":1,"new":[1]%s}`, hooks.Encode(description), more)
	}
	line := func(sessionID, id string) string {
		return fmt.Sprintf(`{"isSidechain":true,"agentId":%q,"sessionId":%q}`, id, sessionID) + "\n{}\n"
	}
	child := func(id, title string, done bool) session.Child {
		return session.Child{ID: id, Title: title, Done: done, At: 1_000, Stored: true}
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		cwd   string
		want  []session.Child
		fails string
	}{
		{"nothing", nil, "/app", nil, ""},
		{"at work, no transcript yet", map[string]string{"agent-a1.meta.json": meta("find it", "")}, "/app", []session.Child{child("a1", "find it", false)}, ""},
		{"another project folder", map[string]string{"agent-a1.meta.json": meta("find it", "")}, "/elsewhere", []session.Child{child("a1", "find it", false)}, ""},
		{"finished", map[string]string{"agent-a1.meta.json": meta("find it", `,"finished":true`), "agent-a1.jsonl": line("s-1", "a1")}, "/app", []session.Child{child("a1", "find it", true)}, ""},
		{"stopped", map[string]string{"agent-a1.meta.json": meta("find it", `,"stoppedByUser":true`)}, "/app", []session.Child{child("a1", "find it", true)}, ""},
		{"swept with its session", map[string]string{"agent-a1.meta.json": meta("find it", `,"sweptByStop":true`)}, "/app", []session.Child{child("a1", "find it", true)}, ""},
		{"another child's transcript", map[string]string{
			"agent-a1.meta.json": meta("forged", ""), "agent-a1.jsonl": line("s-1", "a2"), "agent-a2.meta.json": meta("ours", ""),
		}, "/app", []session.Child{child("a2", "ours", false)}, ""},
		{"a transcript that cannot be read", map[string]string{
			"agent-a1.meta.json": meta("odd", ""), "agent-a1.jsonl/x": "", "agent-a2.meta.json": meta("ours", ""),
		}, "/app", []session.Child{child("a2", "ours", false)}, ""},
		{"another session's transcript", map[string]string{
			"agent-a1.meta.json": meta("forged", ""), "agent-a1.jsonl": line("s-2", "a1"), "agent-a2.meta.json": meta("ours", ""),
		}, "/app", []session.Child{child("a2", "ours", false)}, ""},
		{
			"a hostile title",
			map[string]string{"agent-a1.meta.json": meta("one\n\ttwo\x1b[31m\u202e"+strings.Repeat("x", 500), "")},
			"/app",
			[]session.Child{child("a1", `one two\x1b[31m⟨U+202E⟩`+strings.Repeat("x", maxChildTitle-23), false)},
			"",
		},
		{"odd names", map[string]string{"agent-.meta.json": meta("x", ""), "agent-a b.meta.json": meta("x", ""), "other.meta.json": meta("x", ""), "agent--x.meta.json": meta("x", "")}, "/app", nil, ""},
		{"no JSON among others", map[string]string{"agent-a1.meta.json": "{", "agent-a2.meta.json": meta("ours", "")}, "/app", []session.Child{child("a2", "ours", false)}, ""},
		{"another form", map[string]string{"agent-a1.meta.json": `{"kind":"x"}`, "agent-a2.meta.json": `[]`}, "/app", nil, "in a form that this Bridge does not know"},
		{"far too large", map[string]string{"agent-a1.meta.json": meta(strings.Repeat("x", maxStoredBytes), "")}, "/app", nil, "in a form that this Bridge does not know"},
	} {
		t.Run("CHT-10 "+tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "projects/-app/s-1.jsonl", "")
			for name, text := range tt.files {
				put(t, dir, claudeKids+name, text)
			}
			before := listing(t, dir)
			got, err := stores[bridge.Claude].Children(t.Context(), dir, claudeRoot, tt.cwd)
			checkChildren(t, got, err, tt.want, tt.fails)
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("looking changed the store:\n%s", diff)
			}
		})
	}
}

// TestCHT_10_AnIDInTwoProjects: the project of the session's folder counts, as
// claude writes its name.
func TestCHT_10_AnIDInTwoProjects(t *testing.T) {
	dir := t.TempDir()
	for n, project := range []string{"-azAZ09--b-", "a", "-", "-azAZ09_.b+", "-az----b-", "z"} {
		put(t, dir, "projects/"+project+"/s-1.jsonl", "")
		put(t, dir, fmt.Sprintf("projects/%s/s-1/subagents/agent-a%d.meta.json", project, n), `{"agentType":"x"}`)
	}
	got, err := stores[bridge.Claude].Children(t.Context(), dir, claudeRoot, "/azAZ09_.b+")
	if err != nil || len(got) != 1 || got[0].ID != "a0" {
		t.Errorf("children %+v, %v", got, err)
	}
}

func checkChildren(t *testing.T, got []session.Child, err error, want []session.Child, fails string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	switch {
	case fails == "" && err != nil:
		t.Error(err)
	case fails != "" && (bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(fmt.Sprint(err), fails)):
		t.Errorf("error %v, want one that says %q", err, fails)
	}
}

func TestCHT_10_LinksOutOfAStoreAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, "subagents/agent-a1.meta.json", `{"agentType":"x","description":"from outside"}`)
	secret := put(t, outside, "secret.json", `{"agentType":"x","description":"from outside"}`)
	for name, link := range map[string][2]string{
		"the session's folder": {outside, "projects/-app/s-1"},
		"the children's":       {filepath.Join(outside, "subagents"), "projects/-app/s-1/subagents"},
		"one description":      {secret, claudeKids + "agent-a1.meta.json"},
		"another session's":    {"../../s-2/subagents/agent-a1.meta.json", claudeKids + "agent-a1.meta.json"},
	} {
		t.Run("CHT-10 "+name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "projects/-app/s-1.jsonl", "")
			put(t, dir, "projects/-app/s-2/subagents/agent-a1.meta.json", `{"agentType":"x","description":"a stranger's"}`)
			to := filepath.Join(dir, link[1])
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(link[0], to); err != nil {
				t.Skip("no symbolic links here")
			}
			if got, _ := stores[bridge.Claude].Children(t.Context(), dir, claudeRoot, "/app"); len(got) != 0 {
				t.Errorf("children %+v", got)
			}
		})
	}
	t.Run("CHT-10 a database", func(t *testing.T) {
		dir := t.TempDir()
		database(t, filepath.Join(outside, "real.db"), openCodeSchema, `INSERT INTO session VALUES('ses_2','ses_1','t',1,1)`).Close()
		if err := os.Symlink(filepath.Join(outside, "real.db"), filepath.Join(dir, "opencode.db")); err != nil {
			t.Skip("no symbolic links here")
		}
		if got, err := stores[bridge.OpenCode].Children(t.Context(), dir, "ses_1", ""); len(got) != 0 || bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("children %+v, %v", got, err)
		}
	})
}

const codexSchema = `CREATE TABLE threads(id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER, updated_at INTEGER, source TEXT, title TEXT, agent_nickname TEXT);
	CREATE TABLE thread_spawn_edges(parent_thread_id TEXT NOT NULL, child_thread_id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL)`

// codexThreadRows are the rows of one spawned thread; saysParent is what its own
// record says.
func codexThreadRows(folder, id, parent, saysParent, status string) string {
	source := fmt.Sprintf(`{"subagent":{"thread_spawn":{"parent_thread_id":%q,"depth":1}}}`, saysParent)
	return fmt.Sprintf(`INSERT INTO threads VALUES('%s','%s','1','2','%s','do it','Ada'); INSERT INTO thread_spawn_edges VALUES('%s','%s','%s')`,
		id, filepath.Join(folder, "sessions", "rollout-"+id+".jsonl"), source, parent, id, status)
}

func rolloutLine(kind string, second int) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-21T00:00:%02dZ","type":"event_msg","payload":{"type":%q}}`, second, kind) + "\n"
}

// second is a time of a rollout, Unix epoch milliseconds.
func second(n int) int64 { return time.Date(2026, 11, 21, 0, 0, n, 0, time.UTC).UnixMilli() }

func codexChild(id string, done bool, at int64) session.Child {
	return session.Child{ID: id, Title: "Ada: do it", Done: done, At: at, Stored: true}
}

// one is the store of a session with one thread below it.
func endsAs(status string) func(folder string) []string {
	return func(folder string) []string { return []string{codexThreadRows(folder, "c-1", "r", "r", status)} }
}

// codexStores are the session r in codex's index, the rollouts beside it, and what
// is read of them.
var codexStores = []struct {
	name    string
	rows    func(folder string) []string
	rollout map[string]string
	want    []session.Child
	fails   string
}{
	{"none", func(string) []string { return nil }, nil, nil, ""},
	{
		"at work", endsAs("open"),
		map[string]string{"c-1": started},
		[]session.Child{codexChild("c-1", false, second(1))},
		"",
	},
	{
		"its turn is over", endsAs("open"),
		map[string]string{"c-1": started + ended + said},
		[]session.Child{codexChild("c-1", true, second(2))},
		"",
	},
	{
		"aborted", endsAs("open"),
		map[string]string{"c-1": started + rolloutLine("turn_aborted", 3)},
		[]session.Child{codexChild("c-1", true, second(3))},
		"",
	},
	{
		"asked again", endsAs("open"),
		map[string]string{"c-1": started + ended + rolloutLine("task_started", 4)},
		[]session.Child{codexChild("c-1", false, second(4))},
		"",
	},
	{
		"at work for long", endsAs("open"),
		map[string]string{"c-1": started + ended + started + strings.Repeat(strings.Repeat("x", 1000)+"\n", 100)},
		[]session.Child{codexChild("c-1", false, 1_000)},
		"",
	},
	{
		"closed", endsAs("closed"),
		nil,
		[]session.Child{codexChild("c-1", true, 2_000)},
		"",
	},
	{
		"closed while it was at work", endsAs("closed"),
		map[string]string{"c-1": started},
		[]session.Child{codexChild("c-1", true, second(1))},
		"",
	},
	{
		"only words of an end", endsAs("open"),
		map[string]string{"c-1": started + strings.Replace(ended, "event_msg", "response_item", 1)},
		[]session.Child{codexChild("c-1", false, second(1))},
		"",
	},
	{"a child of a child", func(f string) []string {
		return []string{codexThreadRows(f, "c-2", "c-1", "c-1", "open"), codexThreadRows(f, "c-1", "r", "r", "open")}
	}, map[string]string{"c-1": started, "c-2": started}, []session.Child{codexChild("c-1", false, second(1)), codexChild("c-2", false, second(1))}, ""},
	{"two, the younger one written first", func(f string) []string {
		return []string{codexThreadRows(f, "c-2", "r", "r", "closed"), codexThreadRows(f, "c-1", "r", "r", "closed")}
	}, nil, []session.Child{codexChild("c-1", true, 2_000), codexChild("c-2", true, 2_000)}, ""},
	{"another one's", func(f string) []string { return []string{codexThreadRows(f, "c-1", "r2", "r2", "open")} }, nil, nil, ""},
	{"a forged edge, and what hangs on it", func(f string) []string {
		return []string{codexThreadRows(f, "c-1", "r", "r2", "open"), codexThreadRows(f, "c-2", "c-1", "c-1", "open")}
	}, nil, nil, ""},
	{"a ring", func(f string) []string {
		return []string{codexThreadRows(f, "c-1", "r", "r", "closed"), codexThreadRows(f, "r", "c-1", "c-1", "closed")}
	}, nil, []session.Child{codexChild("c-1", true, 2_000)}, ""},
	{"a rollout elsewhere", func(f string) []string {
		return []string{strings.ReplaceAll(codexThreadRows(f, "c-1", "r", "r", "open"), f, "/etc")}
	}, nil, []session.Child{codexChild("c-1", false, 2_000)}, ""},
	{"no table of edges", func(string) []string { return []string{`DROP TABLE thread_spawn_edges`} }, nil, nil, "state_5.sqlite has no known thread_spawn_edges"},
	{"a column less", func(string) []string { return []string{`ALTER TABLE threads DROP COLUMN agent_nickname`} }, nil, nil, "state_5.sqlite has no known threads"},
	{"a virtual table in its place", func(string) []string {
		return []string{`DROP TABLE thread_spawn_edges`, `CREATE VIRTUAL TABLE thread_spawn_edges USING fts5(parent_thread_id, child_thread_id, status)`}
	}, nil, nil, "no known thread_spawn_edges"},
	{"a view in its place", func(string) []string {
		return []string{`DROP TABLE thread_spawn_edges`, `CREATE VIEW thread_spawn_edges AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n)
			SELECT 'r' parent_thread_id, x child_thread_id, 'open' status FROM n`}
	}, nil, nil, "no known thread_spawn_edges"},
}

var (
	started, ended = rolloutLine("task_started", 1), rolloutLine("task_complete", 2)
	said           = `{"timestamp":"2026-11-21T00:00:09Z","type":"response_item","payload":{"type":"task_started \"task_started\""}}` + "\n"
)

func TestCHT_10_CodexsStoreTellsItsChildren(t *testing.T) {
	for _, tt := range codexStores {
		t.Run("CHT-10 "+tt.name, func(t *testing.T) {
			dir := t.TempDir()
			database(t, filepath.Join(dir, "state_4.sqlite"), `CREATE TABLE old(x)`)
			keep := database(t, filepath.Join(dir, "state_5.sqlite"), append([]string{codexSchema}, tt.rows(dir)...)...)
			for id, text := range tt.rollout {
				put(t, dir, "sessions/rollout-"+id+".jsonl", text)
			}
			for _, when := range []string{"beside its writer", "alone"} {
				before := listing(t, dir)
				got, err := stores[bridge.Codex].Children(t.Context(), dir, "r", "")
				checkChildren(t, got, err, tt.want, tt.fails)
				if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
					t.Errorf("looking %s changed the store:\n%s", when, diff)
				}
				keep.Close()
			}
		})
	}
}

const openCodeSchema = `CREATE TABLE session(id text PRIMARY KEY, parent_id text, title text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
	CREATE TABLE message(id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)`

func openCodeMessage(id, sessionID string, at int, data string) string {
	return fmt.Sprintf(`INSERT INTO message VALUES('%s','%s',%d,%d,'%s')`, id, sessionID, at, at, data)
}

func openCodeSession(id, parent string, at int) string {
	return fmt.Sprintf(`INSERT INTO session VALUES('%s','%s','a child',%d,%d)`, id, parent, at, at)
}

func openCodeChild(id string, done bool, at int64) session.Child {
	return session.Child{ID: id, Title: "a child", Done: done, At: at, Stored: true}
}

// openCodeStores are the session ses_1 in opencode's store, and what is read of it.
var openCodeStores = []struct {
	name  string
	rows  []string
	want  []session.Child
	fails string
}{
	{"none", nil, nil, ""},
	{"just made", []string{openCodeSession("ses_2", "ses_1", 5)}, []session.Child{openCodeChild("ses_2", false, 5)}, ""},
	{
		"at work",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m1", "ses_2", 6, `{"role":"user"}`), openCodeMessage("m2", "ses_2", 7, `{"role":"assistant","time":{"created":7}}`)},
		[]session.Child{openCodeChild("ses_2", false, 7)},
		"",
	},
	{
		"asked again",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m1", "ses_2", 7, `{"role":"user","time":{"completed":8}}`)},
		[]session.Child{openCodeChild("ses_2", false, 7)},
		"",
	},
	{
		"between steps",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m2", "ses_2", 7, `{"role":"assistant","time":{"completed":8},"finish":"tool-calls"}`)},
		[]session.Child{openCodeChild("ses_2", false, 7)},
		"",
	},
	{
		"over",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m2", "ses_2", 7, `{"role":"assistant","time":{"completed":8},"finish":"stop"}`)},
		[]session.Child{openCodeChild("ses_2", true, 8)},
		"",
	},
	{
		"failed",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m2", "ses_2", 7, `{"role":"assistant","time":{"completed":8},"finish":"tool-calls","error":{"name":"x"}}`)},
		[]session.Child{openCodeChild("ses_2", true, 8)},
		"",
	},
	{"no JSON", []string{openCodeSession("ses_2", "ses_1", 5), openCodeMessage("m2", "ses_2", 7, `{`)}, []session.Child{openCodeChild("ses_2", false, 7)}, ""},
	{
		"a child of a child, and a stranger's",
		[]string{openCodeSession("ses_2", "ses_1", 5), openCodeSession("ses_3", "ses_2", 6), openCodeSession("ses_9", "ses_8", 6)},
		[]session.Child{openCodeChild("ses_2", false, 5), openCodeChild("ses_3", false, 6)},
		"",
	},
	{"a ring", []string{openCodeSession("ses_2", "ses_1", 5), openCodeSession("ses_1", "ses_2", 6)}, []session.Child{openCodeChild("ses_2", false, 5)}, ""},
	{"an odd id", []string{openCodeSession("../x", "ses_1", 5)}, nil, ""},
	{"another form", []string{`ALTER TABLE session RENAME COLUMN parent_id TO parent`}, nil, "opencode.db has no known table session"},
}

func TestCHT_10_OpenCodesStoreTellsItsChildren(t *testing.T) {
	for _, tt := range openCodeStores {
		t.Run("CHT-10 "+tt.name, func(t *testing.T) {
			dir := t.TempDir()
			keep := database(t, filepath.Join(dir, "opencode.db"), append([]string{openCodeSchema}, tt.rows...)...)
			for _, when := range []string{"beside its writer", "alone"} {
				before := listing(t, dir)
				got, err := stores[bridge.OpenCode].Children(t.Context(), dir, "ses_1", "")
				checkChildren(t, got, err, tt.want, tt.fails)
				if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
					t.Errorf("looking %s changed the store:\n%s", when, diff)
				}
				keep.Close()
			}
		})
	}
}

// TestCHT_10_OneLookIsBounded: of many children the newest are shown, and of a
// long line of generations the first.
func TestCHT_10_OneLookIsBounded(t *testing.T) {
	t.Run("CHT-10 many children", func(t *testing.T) {
		dir := t.TempDir()
		for n := range maxStoredChildren + 1 {
			path := put(t, dir, fmt.Sprintf("%sagent-a%d.meta.json", claudeKids, n), `{"agentType":"x"}`)
			at := time.UnixMilli(int64(1000 + n))
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		got, err := stores[bridge.Claude].Children(t.Context(), dir, claudeRoot, "")
		if err != nil || len(got) != maxStoredChildren || got[0].ID != "a1" {
			t.Errorf("%d children from %+v on, %v", len(got), got[:min(1, len(got))], err)
		}
	})
	t.Run("CHT-10 many generations", func(t *testing.T) {
		dir := t.TempDir()
		rows := []string{codexSchema}
		parent := "r"
		for n := range maxChildDepth + 2 {
			id := fmt.Sprintf("c-%02d", n)
			rows = append(rows, codexThreadRows(dir, id, parent, parent, "open"))
			parent = id
		}
		database(t, filepath.Join(dir, "state_5.sqlite"), rows...)
		got, err := stores[bridge.Codex].Children(t.Context(), dir, "r", "")
		if err != nil || len(got) != maxChildDepth {
			t.Errorf("%d generations, %v", len(got), err)
		}
	})
}

func TestCHT_10_ASessionsIDIsNoPath(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, claudeKids+"agent-a1.meta.json", `{"agentType":"x"}`)
	for _, id := range []string{"", ".", "../-app/s-1", "x/../s-1", "-app", "_s", "s-1\x00", strings.Repeat("s", 129)} {
		if got, err := stores[bridge.Claude].Children(t.Context(), dir, id, "/app"); len(got) != 0 || err != nil {
			t.Errorf("%q has the children %+v, %v", id, got, err)
		}
	}
}

// TestCHT_10_StrangeStores: whatever stands in a store's place, a look ends and
// says so.
func TestCHT_10_StrangeStores(t *testing.T) {
	for name, make := range map[string]func(dir string){
		"garbage":  func(dir string) { put(t, dir, "opencode.db", strings.Repeat("garbage ", 1000)) },
		"a folder": func(dir string) { put(t, dir, "opencode.db/x", "") },
		"cut short": func(dir string) {
			path := filepath.Join(dir, "opencode.db")
			database(t, path, openCodeSchema, `INSERT INTO session VALUES('ses_2','ses_1','t',1,1)`).Close()
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		},
		"empty": func(dir string) { put(t, dir, "opencode.db", "") },
	} {
		t.Run("CHT-10 "+name, func(t *testing.T) {
			dir := t.TempDir()
			make(dir)
			got, err := stores[bridge.OpenCode].Children(t.Context(), dir, "ses_1", "")
			if len(got) != 0 || bridge.CodeOf(err) != bridge.Unsupported {
				t.Errorf("children %+v, %v", got, err)
			}
		})
	}
	t.Run("CHT-10 no store", func(t *testing.T) {
		for _, kind := range bridge.Kinds() {
			if got, err := stores[kind].Children(t.Context(), filepath.Join(t.TempDir(), "none"), "s", "/app"); len(got) != 0 || err != nil {
				t.Errorf("%s: %+v, %v", kind, got, err)
			}
		}
	})
	t.Run("CHT-10 too many children", func(t *testing.T) {
		dir := t.TempDir()
		rows := []string{openCodeSchema}
		for i := range maxStoredChildren + 50 {
			put(t, dir, fmt.Sprintf("%sagent-a%d.meta.json", claudeKids, i), `{"agentType":"x"}`)
			rows = append(rows, fmt.Sprintf(`INSERT INTO session VALUES('ses_a%d','s-1','t',%d,1)`, i, i))
		}
		database(t, filepath.Join(dir, "opencode.db"), rows...)
		for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.OpenCode} {
			if got, err := stores[kind].Children(t.Context(), dir, claudeRoot, "/app"); len(got) != maxStoredChildren || err != nil {
				t.Errorf("%s: %d children, %v", kind, len(got), err)
			}
		}
	})
	t.Run("CHT-10 a look that is called off", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		database(t, filepath.Join(dir, "opencode.db"), openCodeSchema)
		if got, _ := stores[bridge.OpenCode].Children(ctx, dir, "ses_1", ""); len(got) != 0 {
			t.Errorf("children %+v", got)
		}
	})
}
