package dashboard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/storage/store"
)

// decide records a decision as a session would.
func (w *world) decide(id, topic, text string, scope decision.Scope) {
	w.t.Helper()
	revision := decision.Revision{
		ID: id, Topic: topic, Text: text, Scope: scope, CreatedAt: w.clock.Now().UnixMilli(),
		Author: bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude},
	}
	none := func(decision.Revision) []decision.Notification { return nil }
	if _, _, err := w.db.RecordDecision(w.t.Context(), revision, none); err != nil {
		w.t.Fatal(err)
	}
}

// ids lists the decisions of an answer in order.
func ids(t *testing.T, a answer) []string {
	t.Helper()
	wire := decode[struct {
		Decisions []decision.Revision `json:"decisions"`
	}](t, a)
	found := []string{}
	for _, revision := range wire.Decisions {
		found = append(found, revision.ID)
	}
	return found
}

// decided is a world with decisions of every scope and without a broker.
func decided(t *testing.T) *world {
	w := newWorld(t, offline)
	w.decide("d1", "db", "Use Postgres", decision.AllSessions())
	w.decide("d2", "db", "Use SQLite", decision.AllSessions())
	w.decide("d3", "style", "Tabs", decision.ProjectOf("/src/app"))
	w.decide("d4", "lunch", "At NOON", decision.Scope{Sessions: []string{"claude-app", "peer-9"}})
	w.decide("d5", "ui/colors", "Blue", decision.ProjectOf("/src/other"))
	return w
}

func TestDEC_17_DecisionsListsWhatIsInForce(t *testing.T) {
	w := decided(t)
	tests := []struct {
		name  string
		query string
		want  []string
	}{
		{"omitted scope lists every current one, newest first", "", []string{"d5", "d4", "d3", "d2"}},
		{"empty q matches everything", "?q=", []string{"d5", "d4", "d3", "d2"}},
		{"q is a substring of the text whatever its case", "?q=noon", []string{"d4"}},
		{"q is a substring of the topic", "?q=OLOR", []string{"d5"}},
		{"q is literal", "?q=%25", []string{}},
		{"superseded text does not match", "?q=postgres", []string{}},
		{"scope all", "?scope=all", []string{"d2"}},
		{"scope project adds the global ones", "?scope=" + url.QueryEscape(`{"project":"/src/app/"}`), []string{"d3", "d2"}},
		{"scope sessions adds the global ones", "?scope=" + url.QueryEscape(`{"sessions":["nobody","peer-9"]}`), []string{"d4", "d2"}},
		{"q and scope", "?q=sqlite&scope=all", []string{"d2"}},
		{"q of 1,000 characters", "?q=" + strings.Repeat("%C3%A4", 1_000), []string{}},
	}
	for _, tt := range tests {
		t.Run("DEC-17 "+tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ids(t, w.get("/api/decisions"+tt.query))); diff != "" {
				t.Errorf("GET /api/decisions%s (-want +got):\n%s", tt.query, diff)
			}
		})
	}
}

func TestHUB_06_AHistoryTellsWhatWasDecidedAtOnce(t *testing.T) {
	w := newWorld(t, offline)
	if err := w.db.Remote().RestartTeam(t.Context(), "hub crew", "s1"); err != nil {
		t.Fatal(err)
	}
	said := func(id string, pc, sequence int, follows string) store.TeamDecision {
		return store.TeamDecision{
			Revision: decision.Revision{
				ID: id, Topic: "db", Text: "Use " + id, Scope: decision.AllSessions(), CreatedAt: w.clock.Now().UnixMilli(),
				Author: bridge.Address{ID: "peer-1", Name: fmt.Sprintf("pc%d/api", pc), Agent: bridge.Claude},
			},
			PC: strings.Repeat(fmt.Sprint(pc), 64), Sequence: uint64(sequence), Number: int64(sequence), Follows: follows,
		}
	}
	read := []store.TeamDecision{said("t1", 1, 1, ""), said("t2", 2, 2, "t1"), said("t3", 1, 3, "t1")}
	if _, refused, err := w.db.Remote().ImportTeam(t.Context(), read, store.TeamPosition{Stream: "s1", Sequence: 3}); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	got := decode[dto.History](t, w.get("/api/decisions/db/history")).AtOnce
	if diff := cmp.Diff(map[string]string{"t2": "t3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDEC_18_HistoryGivesEveryRevisionOfExactlyThatTopic(t *testing.T) {
	w := decided(t)
	tests := []struct {
		name  string
		path  string
		topic string
		want  []string
	}{
		{"newest first", "db/history", "db", []string{"d2", "d1"}},
		{"the topic is normalized", "%20DB%09/history", "db", []string{"d2", "d1"}},
		{"a slash in the topic", "ui%2Fcolors/history", "ui/colors", []string{"d5"}},
		{"q looks into old revisions", "db/history?q=postgres", "db", []string{"d1"}},
		{"scope filters", "style/history?scope=all", "style", []string{}},
		{"scope project", "style/history?scope=" + url.QueryEscape(`{"project":"/src/app"}`), "style", []string{"d3"}},
		{"a part of a topic is another topic", "d/history", "d", []string{}},
		{"unknown", "nothing/history", "nothing", []string{}},
		{"two dots", "%2E%2E/history", "..", []string{}},
		{"not ASCII", "%E2%9C%93/history", "✓", []string{}},
	}
	for _, tt := range tests {
		t.Run("DEC-18 "+tt.name, func(t *testing.T) {
			a := w.get("/api/decisions/" + tt.path)
			if diff := cmp.Diff(tt.want, ids(t, a)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := decode[dto.History](t, a).Topic; got != tt.topic {
				t.Errorf("topic %q, want %q", got, tt.topic)
			}
		})
	}
}

func TestDEC_17_ADecisionHasExactlyItsMembers(t *testing.T) {
	w := decided(t)
	a := w.get("/api/decisions/db/history")
	wire := decode[struct{ Decisions []map[string]any }](t, a)
	want := []string{"author", "createdAt", "current", "id", "scope", "sourceMessageId", "supersedes", "text", "topic"}
	for _, member := range wire.Decisions {
		var got []string
		for name := range member {
			got = append(got, name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	newest, oldest := wire.Decisions[0], wire.Decisions[1]
	if newest["supersedes"] != "d1" || newest["current"] != true || oldest["supersedes"] != nil || oldest["current"] != false {
		t.Errorf("supersedes and current are wrong: %s", a.body)
	}
}

func TestDEC_20_MalformedQuestionsAre400(t *testing.T) {
	w := decided(t)
	scopes := []string{
		"", "everything", `"everything"`, "null", "[]", "{}", "7", `{"project":""}`, `{"project":"relative"}`, `{"project":7}`,
		`{"sessions":[]}`, `{"sessions":"a"}`, `{"sessions":[""]}`, `{"project":"/a","sessions":["b"]}`, `{"project":"/a","more":1}`,
		`{"project":"/a"`, `{"project":"/a"}{}`, `{"Project":"/a"}`, "\xff",
	}
	var paths []string
	for _, base := range []string{"/api/decisions", "/api/decisions/db/history"} {
		for _, scope := range scopes {
			paths = append(paths, base+"?scope="+url.QueryEscape(scope))
		}
		paths = append(paths,
			base+"?q="+strings.Repeat("a", 1_001),
			base+"?q="+strings.Repeat("%C3%A4", 1_001),
			base+"?q=%FF", base+"?q=%zz", base+"?q=a;b", base+"?q=a&q=b", base+"?scope=all&scope=all",
		)
	}
	for _, topic := range []string{"", "%20", "%00", "a%0Ab", "%FF", strings.Repeat("a", 201)} {
		paths = append(paths, "/api/decisions/"+topic+"/history")
	}
	for _, path := range paths {
		refused(t, "DEC-20 "+path, w.get(path), http.StatusBadRequest)
	}
}

func TestDEC_20_UnknownTopicsGiveEmptyArrays(t *testing.T) {
	w := newWorld(t, offline)
	if a := w.get("/api/decisions?q=nothing"); a.body != `{"decisions":[]}` {
		t.Errorf("body %s", a.body)
	}
	if a := w.get("/api/decisions/No%20Such/history"); a.body != `{"topic":"no such","decisions":[]}` {
		t.Errorf("body %s", a.body)
	}
}

// listing is a folder's files with the hash of each.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return files
}

func TestDEC_19_ReadsWorkWithoutABrokerAndWriteNothing(t *testing.T) {
	w := decided(t)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	w.board.sources.open = func(ctx context.Context) (Reader, error) {
		reader, err := store.OpenReader(ctx, w.path())
		if err == nil {
			t.Cleanup(func() { _ = reader.Close() })
		}
		return reader, err
	}
	before := listing(t, w.dir)
	if got := ids(t, w.get("/api/decisions")); len(got) != 4 {
		t.Errorf("decisions %v, want 4", got)
	}
	if got := ids(t, w.get("/api/decisions/db/history")); len(got) != 2 {
		t.Errorf("history %v, want 2", got)
	}
	if diff := cmp.Diff(before, listing(t, w.dir)); diff != "" {
		t.Errorf("reading changed the home (-before +after):\n%s", diff)
	}
}

func TestDEC_19_AMissingStoreIsEmptyAndStaysMissing(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, offline, func(o *Options) {
		o.Reader = func(ctx context.Context) (Reader, error) {
			return store.OpenReader(ctx, filepath.Join(dir, "bridge.db"))
		}
	})
	for _, path := range []string{"/api/decisions", "/api/decisions/db/history", "/api/state", "/api/archive/messages"} {
		if a := w.get(path); a.status != http.StatusOK || !json.Valid([]byte(a.body)) {
			t.Errorf("GET %s = %d %s", path, a.status, a.body)
		}
	}
	if files := listing(t, dir); len(files) != 0 {
		t.Errorf("reading made %v", files)
	}
}

func TestDEC_19_AStoreOfANewerBuildIsRefusedInWords(t *testing.T) {
	w := newWorld(t, offline, func(o *Options) {
		o.Reader = func(context.Context) (Reader, error) {
			return nil, bridge.Errorf(bridge.Unsupported, "the store was written by a newer Bridge")
		}
	})
	refused(t, "a newer store", w.get("/api/decisions"), http.StatusNotImplemented)
}

// TestSTO_18_ADecisionThatCannotBeReadIsNamed: the others are there, and the page
// can say which one is not.
func TestSTO_18_ADecisionThatCannotBeReadIsNamed(t *testing.T) {
	w := newWorld(t, offline)
	w.decide("d1", "db", "Use SQLite", decision.AllSessions())
	w.inStore(`INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at) VALUES
		('odd', 'db', 'x', '', 'p', 'p', 'claude', 1), ('new', 'style', 'x', '{"team":"core"}', 'p', 'p', 'claude', 1)`)
	w.decide("d2", "lunch", "Noon", decision.AllSessions())
	golden(t, "decisions-unreadable", w.get("/api/decisions").body)
	want := `{"topic":"style","decisions":[],"unreadable":[{"id":"new","topic":"style","why":"its scope cannot be read","newer":true}]}`
	if got := w.get("/api/decisions/style/history"); got.status != http.StatusOK || got.body != want {
		t.Errorf("the history is %d %s", got.status, got.body)
	}
	if got := ids(t, w.get("/api/decisions/db/history")); len(got) != 1 {
		t.Errorf("the history of db is %v; want d1", got)
	}
}

// inStore runs SQL on the store from outside, as another program would.
func (w *world) inStore(script string) {
	w.t.Helper()
	pool, err := sql.Open("sqlite", filepath.Join(w.dir, "bridge.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := pool.Exec(script); err != nil {
		w.t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// A revision's delivery is found however much was said since.
func TestDEC_21_ATopicsNoticesAreFetchedForTheTopic(t *testing.T) {
	w := newWorld(t)
	author := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	for i, topic := range []string{"db", "db", "other"} {
		rev := decision.Revision{ID: fmt.Sprint("d", i), Topic: topic, Text: "x", Scope: decision.AllSessions(), Author: author, CreatedAt: int64(1000 + i)}
		_, _, err := w.db.RecordDecision(t.Context(), rev, func(r decision.Revision) (told []decision.Notification) {
			for _, to := range []string{"peer-1", "peer-2"} {
				told = append(told, decision.Notification{DecisionID: r.ID, SessionKey: "claude:" + to, Message: bridge.Message{
					ID: "told-" + r.ID, Recipient: to, From: author, To: "*", ConversationID: "decision-" + r.ID, Hop: 100, Body: "x", CreatedAt: r.CreatedAt,
				}})
			}
			return told
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 205 {
		w.store(fmt.Sprintf("m%03d", i), author, "x", "peer-2")
	}
	for path, want := range map[string]string{"db": "told-d1 told-d0", "%20DB": "told-d1 told-d0", "other": "told-d2", "nothing": ""} {
		var got []string
		for _, m := range decode[dto.Messages](t, w.get("/api/decisions/"+path+"/notices")).Messages {
			got = append(got, m.ID)
			if m.Kind != "decision" || len(m.Deliveries) != 2 {
				t.Errorf("%s: the notice %+v is no decision for two", path, m)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the notices %q, want %q", path, got, want)
		}
	}
	refused(t, "no topic", w.get("/api/decisions/%20/notices"), http.StatusBadRequest)
}
