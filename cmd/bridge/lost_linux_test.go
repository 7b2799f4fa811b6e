package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"bridge/backend/testing/testkit"
)

// trace is what alone is left of a store: a file of the home, made by hand or
// taken over from a home in which a broker served.
type trace struct {
	path string
	text string // "" takes it over
	sql  string // makes it a database
}

const setName = "-1800000000001-11111111-1111-1111-1111-111111111111"

var traces = []trace{
	{path: "history.db"}, // of the used home: its index has rows
	{path: "bridge.db-wal", text: "commits"},
	{path: "backups/snapshot" + setName + "/bridge.db", text: "a store"},
	{path: "backups/recovery" + setName + "/recovery.json", text: "{}"},
	{path: "message-backups/messages" + setName + "/messages.db", text: "messages"},
	{path: ".migration-snapshots/bridge.db.metadata-8-to-9", text: "{}"},
	{path: "bridge.db.backup-7-to-9-20260101T000000.000Z", text: "a store"},
	{path: "read-journal/0b5f.json", text: "[]"},
	{path: "logs/sizes.jsonl", text: `{"at": 1800000000000, "total": 4, "parts": {"bridge.db": 4}}`},
	{path: ".storage-users/999999-lease", text: `{"pid": 999999, "identity": "gone:1", "program": "the broker (serve)"}`},
	{path: "archive.db", sql: "CREATE TABLE archived_messages (id); INSERT INTO archived_messages VALUES ('m1'); PRAGMA user_version = 1"},
	{path: "questions.db", sql: "CREATE TABLE questions (id); INSERT INTO questions VALUES ('q1'); PRAGMA user_version = 1"},
	{path: "compat.db", sql: "CREATE TABLE outbox (id); INSERT INTO outbox VALUES ('m1'); PRAGMA user_version = 1"},
}

// leave puts the trace into a home.
func (r trace) leave(t *testing.T, used, home string) {
	t.Helper()
	path := filepath.Join(home, r.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	switch {
	case r.sql != "":
		database(t, path, r.sql)
	case r.text != "":
		overwrite(t, path, r.text)
	default:
		copyHome(t, filepath.Join(used, r.path), path)
	}
}

func database(t *testing.T, path, script string) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(script); err != nil {
		t.Fatal(err)
	}
}

// named is how the trace is told: of a set or a folder of it the one path.
func (r trace) named() string {
	for _, suffix := range []string{"/bridge.db", "/recovery.json", "/messages.db"} {
		r.path = strings.TrimSuffix(r.path, suffix)
	}
	return r.path
}

// Whatever is left of a store: every program says the same sentence, none makes
// another store, and nothing changes.
func TestSTO_17_EverybodyRefusesALostStore(t *testing.T) {
	used := filepath.Join(shortDir(t), "used")
	usedHome(t, used)
	for _, left := range traces {
		t.Run(left.path, func(t *testing.T) {
			home := filepath.Join(shortDir(t), "h")
			if err := os.MkdirAll(filepath.Join(home, "logs"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"token", "launch-secret"} {
				copyHome(t, filepath.Join(used, file), filepath.Join(home, file))
			}
			left.leave(t, used, home)
			refusedByAll(t, home, left.named())
		})
	}
	for name, vacate := range map[string]func(path string){
		"no bytes":  func(path string) { overwrite(t, path, "") },
		"no tables": func(path string) { database(t, path, "CREATE TABLE x (y); DROP TABLE x") },
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(shortDir(t), "h")
			copyHome(t, used, home)
			if err := os.Remove(filepath.Join(home, "bridge.db")); err != nil {
				t.Fatal(err)
			}
			vacate(filepath.Join(home, "bridge.db"))
			refusedByAll(t, home, "history.db")
		})
	}
}

// soon is how quickly a session's tool must say that the store is lost: much
// sooner than it would give up on a broker.
const soon = 10 * time.Second

func refusedByAll(t *testing.T, home, sign string) {
	t.Helper()
	before := state(home)
	first := runBridge(t, nil, "", "serve", "--port", "0", "--home", home)
	sentence, isRefusal := strings.CutPrefix(strings.TrimSuffix(first.stderr, "\n"), "bridge: ")
	if first.code != 3 || !isRefusal || strings.Contains(sentence, "\n") || !strings.HasPrefix(sentence, "the store "+home+"/bridge.db is lost: ") ||
		!strings.Contains(sentence, ", but "+sign+" show") || !strings.Contains(sentence, "`bridge serve --new-store --home "+home+"`") {
		t.Fatalf("serve: %+v", first)
	}
	for _, args := range [][]string{
		{"serve", "--background"},
		{"service", "run"},
		{"status"},
		{"open"},
		{"url"},
		{"send", "*", "hello"},
		{"doctor", "--backup"},
		{"doctor", "--fix", "--yes"},
	} {
		if got := runBridge(t, nil, "", append(args, "--home", home)...); got.code != 3 || got.stderr != first.stderr {
			t.Errorf("bridge %v: %+v", args, got)
		}
	}
	if got := runBridge(t, nil, "", "status", "--json", "--home", home); got.code != 3 || !strings.Contains(got.stdout, `"error"`) {
		t.Errorf("status --json: %+v", got)
	}
	if got := runBridge(t, nil, "", "serve", "--new-store", "--home", home); got.code != 3 || !strings.Contains(got.stdout, sentence) || !strings.Contains(got.stderr, "--yes") {
		t.Errorf("serve --new-store without a terminal: %+v", got)
	}
	began := time.Now()
	if answer, how := askMCP(t, home); how.code != 0 || answer != sentence {
		t.Errorf("the session's tool: %+v", how)
	}
	testkit.Within(t, soon, time.Since(began), "the session's tool answered")
	if got := runBridge(t, nil, stopEvent, "hook", "claude", "Stop", "--home", home); got.code != 0 || got.stdout != "{}\n" {
		t.Errorf("hook: %+v", got)
	}
	if got := runBridge(t, nil, "", "doctor", "--home", home); got.code != 1 || !strings.Contains(got.stdout, "[store-lost]") || !strings.Contains(got.stdout, sign) {
		t.Errorf("doctor: %+v", got)
	}
	if after := state(home); after != before {
		t.Errorf("the home changed:\n--- before\n%s--- after\n%s", before, after)
	}
}

// A broker whose store is taken away goes on refusing, and its page says so; the
// one that follows it does not begin anew.
func TestSTO_17_ARunningBrokerSaysThatItsStoreIsLost(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	s := serve(t, home)
	path := filepath.Join(home, "bridge.db")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var answers bytes.Buffer
	err := session([]string{
		"--home", home, "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", "/", "--",
		"decide", `{"topic":"style","text":"tabs"}`,
	}, &answers)
	if err != nil || !strings.Contains(answers.String(), "decide refused") {
		t.Errorf("a decision: %v, %s", err, answers.String())
	}
	testkit.Within(t, soon, time.Since(began), "the session's tool answered")
	page := visit(t, s.link)
	var report struct {
		OK       bool
		Findings []struct{ Code, Path, Detail string }
	}
	page("/api/storage", &report)
	if report.OK || len(report.Findings) == 0 || report.Findings[0].Code != "store-lost" || report.Findings[0].Path != "bridge.db" || !strings.Contains(report.Findings[0].Detail, "--new-store") {
		t.Errorf("GET /api/storage = %+v", report)
	}
	// Who would take its place is refused before it is asked to leave.
	if got := runBridge(t, nil, "", "serve", "--port", "0", "--home", home); got.code != 3 || !strings.Contains(got.stderr, "is lost: it is gone") {
		t.Errorf("another serve: %+v", got)
	}
	if got := runBridge(t, nil, "", "status", "--home", home); got.code != 0 {
		t.Errorf("the first one has left: %+v", got)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("the log of the lost store is gone: %v, %v", info, err)
	}
	refusedByAll(t, home, "bridge.db-wal and "+leaseOf(t, home))
}

// leaseOf is the one lease in the home.
func leaseOf(t *testing.T, home string) string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(home, ".storage-users"))
	if err != nil || len(found) != 1 {
		t.Fatalf("leases: %v, %v", found, err)
	}
	return ".storage-users/" + found[0].Name()
}

// visit opens the dashboard and returns how to ask its API.
func visit(t *testing.T, link string) func(path string, answer any) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	t.Cleanup(client.CloseIdleConnections)
	get := func(url string) []byte {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s, %v: %s", url, response.Status, err, body)
		}
		return body
	}
	get(link)
	origin := link[:strings.Index(link, "/launch")]
	return func(path string, answer any) {
		t.Helper()
		if err := json.Unmarshal(get(origin+path), answer); err != nil {
			t.Fatal(err)
		}
	}
}

// A session that began while the store was lost works as soon as it is back.
func TestSTO_17_ASessionGoesOnWhenTheStoreIsBack(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	usedHome(t, home)
	if got := runBridge(t, nil, "", "doctor", "--backup", "--home", home); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.Remove(filepath.Join(home, "bridge.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endBrokers(filepath.Dir(home)) })
	ask, end := mcpSession(t, home)
	if answer := ask("inbox"); !strings.Contains(answer, "is lost: it is gone") {
		t.Errorf("while it is lost: %s", answer)
	}
	if got := runBridge(t, nil, "", "doctor", "--restore", "latest", "--yes", "--home", home); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	answer := ""
	for deadline := time.Now().Add(prompt); !strings.Contains(answer, `"waits"`); answer = ask("inbox") {
		if time.Now().After(deadline) {
			t.Fatalf("still: %s", answer)
		}
		<-time.After(50 * time.Millisecond)
	}
	end()
}

// mcpSession is an MCP server whose tools can be asked.
func mcpSession(t *testing.T, home string) (ask func(tool string) string, end func()) {
	t.Helper()
	c, err := client.NewStdioMCPClient("bridge", nil, "mcp", "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", "/", "--home", home)
	if err != nil {
		t.Fatal(err)
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	if _, err := c.Initialize(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	ask = func(tool string) string {
		t.Helper()
		var answer bytes.Buffer
		if err := callTool(t.Context(), c, tool, "{}", &answer); err != nil {
			t.Fatal(err)
		}
		return answer.String()
	}
	return ask, func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
