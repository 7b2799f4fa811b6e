package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent/connect"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/core/needs"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/platform/ipc/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a body with testdata/<name>.json.
func golden(t *testing.T, name, body string) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(body), "", "  "); err != nil {
		t.Fatalf("%s: %v: %s", name, err, body)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), `go test -update` writes it anew:\n%s", path, diff)
	}
}

// furnished is a world whose every time and id is fixed.
func furnished(t *testing.T, change ...func(*Options)) *world {
	w := newWorld(t, append([]func(*Options){func(o *Options) {
		o.Jobs, o.Questions, o.Exchanges = toldJobs{}, toldQuestions{}, &toldExchanges{}
		o.Agents = toldAgents{list: func() []connect.Agent {
			return []connect.Agent{
				{Kind: bridge.Claude, Found: true, Path: "/usr/bin/claude", Version: "2.1.0", Connected: true, Missing: []string{}},
				{Kind: bridge.Codex, Detail: "codex is not on this PC: codex is not on PATH", Missing: []string{}},
			}
		}}
	}}, change...)...)
	w.broker.join(t, claudeSession(), api.Child{ID: "child-1", Title: "look around", State: "busy"})
	w.broker.join(t, codexSession())
	w.broker.join(t, session.Session{ID: "peer-3", Kind: bridge.OpenCode, Name: "opencode-docs", Cwd: "/src/docs", Since: fixedTime.UnixMilli()})
	w.broker.leave("peer-3")

	claude, codex := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}, bridge.Address{ID: "peer-2", Name: "codex-api", Agent: bridge.Codex}
	minute := int64(60_000)
	now := fixedTime.UnixMilli()
	base := bridge.Message{ID: "m1", From: claude, To: "codex-api", ConversationID: "m1", Body: "Which port?", CreatedAt: now}
	w.append(base, "peer-2")
	w.mark(bridge.StageWoken, "m1", "peer-2", now+minute, "asked its queue")
	w.mark(bridge.StageHanded, "m1", "peer-2", now+2*minute, "hook PostToolUse")
	w.mark(bridge.StageConsumed, "m1", "peer-2", now+3*minute, "next activity: Stop")
	w.append(bridge.Message{ID: "m2", From: codex, To: "claude-app", ConversationID: "m1", ReplyTo: "m1", Hop: 1, Body: "4777", CreatedAt: now + 4*minute}, "peer-1")
	w.append(bridge.Message{ID: "m3", From: bridge.OwnerAddress(), To: "*", ConversationID: "m3", Body: "Stand-up", CreatedAt: now + 5*minute}, "peer-1", "peer-3")
	w.mark(bridge.StageHanded, "m3", "peer-1", now+6*minute, "hook UserPromptSubmit")
	w.decide("d1", "db", "Use SQLite", decision.AllSessions())
	w.append(bridge.Message{ID: "m4", From: claude, To: "codex-api", ConversationID: "decision-d1", Hop: 100, Body: `Decision on "db"`, CreatedAt: now + 7*minute}, "peer-2")
	return w
}

func (w *world) mark(stage bridge.Stage, id, recipient string, at int64, evidence string) {
	w.t.Helper()
	if err := w.db.Record(w.t.Context(), stage, []mail.Mark{{MessageID: id, Recipient: recipient, At: at, Evidence: evidence}}); err != nil {
		w.t.Fatal(err)
	}
	w.broker.changed()
}

// The state has all its members, or the answer is a refusal in a sentence: nothing between
// the two, however little of Bridge is there yet.
func TestAStateIsWholeOrRefused(t *testing.T) {
	var whole map[string]any
	if err := json.Unmarshal([]byte(furnished(t).get("/api/state").body), &whole); err != nil {
		t.Fatal(err)
	}
	brokerSays := func(err error) func(*world) { return func(w *world) { w.broker.fail = err } }
	readerSays := func(err error) func(*Options) {
		return func(o *Options) { o.Reader = func(context.Context) (Reader, error) { return nil, err } }
	}
	for name, tt := range map[string]struct {
		options func(*Options)
		then    func(*world)
		status  int
	}{
		"no jobs":               {func(o *Options) { o.Jobs = nil }, nil, 200},
		"no broker":             {offline, nil, 200},
		"a broker that ends":    {nil, brokerSays(bridge.Errorf(bridge.Unavailable, "the broker is ending")), 200},
		"nothing stored yet":    {readerSays(fs.ErrNotExist), nil, 200},
		"a broker in trouble":   {nil, brokerSays(bridge.Errorf(bridge.Storage, "the disk is full")), 503},
		"an unreadable store":   {readerSays(bridge.Errorf(bridge.Storage, "the store is damaged")), nil, 503},
		"a store that is newer": {readerSays(bridge.Errorf(bridge.Unsupported, "the store is newer")), nil, 501},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				if tt.options != nil {
					tt.options(o)
				}
			})
			if tt.then != nil {
				tt.then(w)
			}
			a := w.get("/api/state")
			if tt.status != http.StatusOK {
				refused(t, "the state", a, tt.status)
				return
			}
			got := decode[map[string]any](t, a)
			for member := range whole {
				if got[member] == nil {
					t.Errorf("the member %q is missing or null: %s", member, a.body)
				}
			}
		})
	}
}

// TestTheShapesAreThoseOfTheGoldenFiles keeps server and page in step: the
// page's tests read the same files.
func TestTheShapesAreThoseOfTheGoldenFiles(t *testing.T) {
	w := furnished(t)
	for name, path := range map[string]string{
		"state":            "/api/state",
		"messages":         "/api/messages?peer=claude-app",
		"message":          "/api/messages/m1",
		"archive":          "/api/archive/messages",
		"decisions":        "/api/decisions",
		"history":          "/api/decisions/db/history",
		"agents":           "/api/agents",
		"agents-connected": "/api/agents/connected",
		"run":              "/api/runs/" + ended,
		"run-log":          "/api/runs/" + working + "?from=9",
		"approvals":        "/api/approvals",
		"questions":        "/api/questions",
		"activity":         "/api/activity?since=0",
		"hours":            "/api/activity/hours",
		"models":           "/api/models",
		"usage":            "/api/usage",
	} {
		golden(t, name, w.get(path).body)
	}
	golden(t, "sent", w.post("/api/messages", `{"to":"*","body":"hello"}`).body)
	chat := w.post(toClaude, `{"body":"hello"}`).body
	receipt := *decode[dto.Chat](t, answer{status: http.StatusOK, body: chat}).Receipt
	golden(t, "chat", strings.ReplaceAll(chat, receipt, "a-receipt"))
	golden(t, "chat-delivery", strings.ReplaceAll(w.get("/api/chat-delivery/"+receipt).body, receipt, "a-receipt"))
	golden(t, "chat-child", w.post(toClaude, `{"body":"hello","child":"child-1"}`).body)
	golden(t, "approval", w.post("/api/approvals/q-2", `{"decision":"deny","reason":"not the folder out"}`).body)
	golden(t, "approval-late", w.post("/api/approvals/q-1", `{"decision":"deny"}`).body)
	golden(t, "question", w.post("/api/questions/0198f0a2-0000-7000-8000-00000000000a", `{"option":"2","text":"for now","pin":true}`).body)
	golden(t, "question-late", w.post("/api/questions/0198f0a2-0000-7000-8000-00000000000b", `{"text":"yes"}`).body)
	golden(t, "exchange", w.post("/api/exchanges", `{"a":"peer-1","b":"peer-2","action":"pause"}`).body)
	golden(t, "run-said", w.post("/api/subagents/message", `{"job":"`+working+`","body":"also the docs"}`).body)
	golden(t, "run-diff", w.get("/api/runs/"+working+"/diff").body)
	golden(t, "run-turns", w.get("/api/runs/"+ended+"/turns").body)
	golden(t, "run-turns-working", w.get("/api/runs/"+working+"/turns").body)
	golden(t, "run-finished", w.post("/api/runs/"+working+"/finish", `{"action":"squash","message":"5b1f7c2"}`).body)
	golden(t, "run-conflicting", w.post("/api/runs/"+working+"/finish", `{"action":"merge"}`).body)
	golden(t, "error", w.get("/nowhere").body)

	world := furnished(t)
	world.clock.Advance(20 * time.Minute) // m2 and a copy of m3 have waited for 15 minutes
	due, err := json.Marshal(dto.Needs{Needs: decode[dto.State](t, world.get("/api/state")).Needs})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "needs", string(due))

	away := furnished(t)
	away.board.sources.broker = nil
	golden(t, "state-offline", away.get("/api/state").body)
	empty := newWorld(t, offline)
	golden(t, "state-empty", empty.get("/api/state").body)
}

// lists are the members that the contract gives as arrays or objects.
var lists = map[string]bool{
	"peers": true, "messages": true, "runs": true, "jobs": true, "approvals": true, "children": true, "deliveries": true,
	"stages": true, "needs": true, "questions": true, "options": true, "decisions": true, "agents": true, "recipients": true,
}

func TestNoAnswerHasNullWhereAListBelongs(t *testing.T) {
	full, empty := furnished(t), newWorld(t, offline)
	bare := newWorld(t)
	bare.broker.join(t, claudeSession()) // its children are nil
	bare.broker.children["peer-1"] = nil
	var walk func(what string, value any)
	walk = func(what string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				if inner == nil && lists[name] {
					t.Errorf("%s: %q is null", what, name)
				}
				walk(what, inner)
			}
		case []any:
			for _, inner := range v {
				walk(what, inner)
			}
		case nil:
		}
	}
	for name, w := range map[string]*world{"full": full, "empty": empty, "bare": bare} {
		for _, rt := range w.board.routes {
			if rt.kind != guard.Read {
				continue
			}
			path := samplePath(rt.pattern)
			if path == "/api/messages" {
				path += "?peer=claude-app"
			}
			a := w.get(path)
			var value any
			if err := json.Unmarshal([]byte(a.body), &value); err != nil {
				t.Fatalf("GET %s: %v: %s", path, err, a.body)
			}
			if value == nil {
				t.Errorf("GET %s is null", path)
			}
			walk(name+" GET "+path, value)
		}
	}
	walk("POST /api/messages", decode[any](t, full.post("/api/messages", `{"to":"*","body":"x"}`)))
}

func TestStateIsBuiltOncePerRevision(t *testing.T) {
	w := newWorld(t)
	counting := &countingReader{Reader: w.db}
	w.board.sources.open = func(context.Context) (Reader, error) { return counting, nil }
	w.broker.join(t, claudeSession())
	first := w.get("/api/state").body
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if got := w.do(w.request(http.MethodGet, "/api/state", "")).body; got != first {
				t.Errorf("the same revision gave another state")
			}
		})
	}
	asking.Wait()
	if counting.recent != 1 {
		t.Errorf("the messages were read %d times, want once", counting.recent)
	}
	w.store("m1", bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}, "hello", "peer-1")
	if got := w.get("/api/state").body; !strings.Contains(got, "hello") {
		t.Error("a new revision did not show the new message")
	}
	// Another broker may count to the same number.
	w.broker.mu.Lock()
	w.broker.status.PID++
	w.broker.mu.Unlock()
	w.get("/api/state")
	if counting.recent != 3 {
		t.Errorf("the messages were read %d times, want 3", counting.recent)
	}
}

// countingReader counts how often the state was built.
type countingReader struct {
	Reader
	mu     sync.Mutex
	recent int
}

func (c *countingReader) Recent(ctx context.Context, limit int) ([]mail.HistoryRow, error) {
	c.mu.Lock()
	c.recent++
	c.mu.Unlock()
	return c.Reader.Recent(ctx, limit)
}

func TestStateShowsTheNewest200Messages(t *testing.T) {
	w := newWorld(t)
	from := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	for i := range 205 {
		w.store(fmt.Sprintf("m%03d", i), from, "x", "peer-2")
	}
	state := decode[dto.State](t, w.get("/api/state"))
	if len(state.Messages) != 200 || state.Messages[0].ID != "m204" || state.Messages[199].ID != "m005" {
		t.Errorf("%d messages from %s to %s", len(state.Messages), state.Messages[0].ID, state.Messages[len(state.Messages)-1].ID)
	}
}

func TestDSK_02_MailBecomesOverdueWhileNothingElseChanges(t *testing.T) {
	w := furnished(t)
	names := func() (names []string) {
		for _, item := range decode[dto.State](t, w.get("/api/state")).Needs {
			if item.Sort == needs.Mail {
				names = append(names, strings.TrimSuffix(item.Title, " has not read 1 message"))
			}
		}
		return names
	}
	w.clock.Advance(18 * time.Minute) // m2 is of minute 4
	if got := names(); len(got) != 0 {
		t.Errorf("after 14 minutes %q have not read for too long", got)
	}
	w.clock.Advance(time.Minute)
	if got := names(); !slices.Equal(got, []string{"claude-app"}) {
		t.Errorf("after 15 minutes %q have not read for too long, want claude-app", got)
	}
}

func TestStateCountsTheLastHourBeyondItsList(t *testing.T) {
	w := newWorld(t)
	from := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	now := w.clock.Now().UnixMilli()
	const hour = 3_600_000
	send := func(id string, at int64, hop int, conversation, replyTo string) {
		m := bridge.Message{ID: id, From: from, To: "*", ConversationID: conversation, ReplyTo: replyTo, Hop: hop, Body: "x", CreatedAt: at}
		w.append(m, "peer-2", "peer-3")
	}
	send("older", now-hour-1, 0, "c", "")
	send("just", now-hour, 0, "c", "")
	for i := range 240 {
		send(fmt.Sprintf("m%03d", i), now-int64(i), 0, "c", "")
	}
	send("told", now, 100, "decision-d1", "")
	send("told later", now, 100, "decision-d1", "")
	send("an answer to it", now, 100, "decision-d1", "told")
	state := decode[dto.State](t, w.get("/api/state"))
	if len(state.Messages) != 200 || state.LastHour != (dto.LastHour{Messages: 243, At: now}) {
		t.Errorf("%d listed, the last hour is %+v; want 200 and 243 messages", len(state.Messages), state.LastHour)
	}
	w.clock.Advance(time.Hour - time.Minute) // nothing else changed
	if got := decode[dto.State](t, w.get("/api/state")).LastHour.Messages; got != 242 {
		t.Errorf("59 minutes later the last hour has %d messages, want 242", got)
	}
	w.clock.Advance(2 * time.Minute)
	if got := decode[dto.State](t, w.get("/api/state")).LastHour.Messages; got != 0 {
		t.Errorf("61 minutes later the last hour has %d messages, want none", got)
	}
}

func TestABrokerThatFailsIsAnErrorOneThatIsGoneIsNot(t *testing.T) {
	w := newWorld(t)
	w.broker.fail = bridge.Errorf(bridge.Unavailable, "gone")
	if state := decode[dto.State](t, w.get("/api/state")); state.Broker.State != "offline" || state.Broker.PID != nil {
		t.Errorf("broker %+v, want offline", state.Broker)
	}
	w.broker.fail = errors.New("a bug")
	refused(t, "a failing broker", w.get("/api/state"), http.StatusInternalServerError)
}

func TestOnlyTheBrokersNotificationsAreShownAsDecisions(t *testing.T) {
	claude := bridge.Address{ID: "p", Name: "claude-app", Agent: bridge.Claude}
	tests := []struct {
		name string
		row  mail.HistoryRow
		want string
	}{
		{"notification", mail.HistoryRow{From: claude, Hop: 100, ConversationID: "decision-1"}, "decision"},
		{"a session that borrows the conversation", mail.HistoryRow{From: claude, ConversationID: "decision-1"}, "message"},
		{"a reply to a notification", mail.HistoryRow{From: claude, Hop: 100, ReplyTo: "m", ConversationID: "decision-1"}, "message"},
		{"the owner", mail.HistoryRow{From: bridge.OwnerAddress()}, "owner"},
		{"a session that calls itself you", mail.HistoryRow{From: bridge.Address{ID: "p", Name: "you", Agent: bridge.Claude}}, "message"},
	}
	for _, tt := range tests {
		if got := dto.KindOf(tt.row); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestMessagesOfOneSession(t *testing.T) {
	w := chatting(t)
	claude := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	codex := bridge.Address{ID: "peer-2", Name: "codex-api", Agent: bridge.Codex}
	w.append(bridge.Message{ID: "m1", From: claude, To: "codex-api", ConversationID: "m1", Body: "one", CreatedAt: 1000}, "peer-2")
	w.append(bridge.Message{ID: "m2", From: codex, To: "claude-app", ConversationID: "m1", Body: "two", CreatedAt: 2000}, "peer-1")
	w.append(bridge.Message{ID: "m3", From: codex, To: "codex-api", ConversationID: "m3", Body: "three", CreatedAt: 3000}, "peer-2")
	tests := []struct {
		query string
		want  []string
	}{
		{"peer=claude-app", []string{"m2", "m1"}},
		{"peer=codex-api", []string{"m3", "m2", "m1"}},
		{"peer=codex-api&limit=1", []string{"m3"}},
		{"peer=codex-api&before=3000", []string{"m2", "m1"}},
	}
	for _, tt := range tests {
		var got []string
		for _, row := range decode[dto.Messages](t, w.get("/api/messages?"+tt.query)).Messages {
			got = append(got, row.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
	refused(t, "unknown session", w.get("/api/messages?peer=nobody"), http.StatusNotFound)
	refused(t, "no session", w.get("/api/messages"), http.StatusNotFound)
	for _, bad := range []string{"limit=0", "limit=201", "limit=x", "limit=", "before=-1", "before=x", "before=1.5"} {
		refused(t, bad, w.get("/api/messages?peer=codex-api&"+bad), http.StatusBadRequest)
	}
}

func TestAMessageOfAnyAgeIsShownByItsID(t *testing.T) {
	w := furnished(t)
	if got := decode[dto.Message](t, w.get("/api/messages/m2")); got.ID != "m2" || got.Body != "4777" || len(got.Deliveries) != 1 {
		t.Errorf("%+v", got)
	}
	refused(t, "an id that nobody gave", w.get("/api/messages/none"), http.StatusNotFound)
}

func TestANameThatIsUsedAgainShowsTheLiveSessionsMessages(t *testing.T) {
	w := newWorld(t)
	w.broker.join(t, claudeSession())
	w.store("old", bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}, "old", "peer-1")
	w.broker.leave("peer-1")
	again := claudeSession()
	again.ID, again.SessionID = "peer-8", "host-8"
	w.broker.join(t, again)
	if got := decode[dto.Messages](t, w.get("/api/messages?peer=claude-app")).Messages; len(got) != 0 {
		t.Errorf("a new session inherited %d messages", len(got))
	}
}

func TestSTO_12_ArchiveSearch(t *testing.T) {
	w := chatting(t)
	claude := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	for i, body := range []string{"alpha 100%", "beta_x", "ALPHA", "alpha betaYx"} {
		w.append(bridge.Message{ID: fmt.Sprintf("m%d", i), From: claude, To: "*", ConversationID: "c", Hop: i, Body: body, CreatedAt: int64(1000 * (i + 1))}, "peer-2", "stranger")
	}
	tests := []struct {
		query string
		want  []string
	}{
		{"", []string{"m3", "m2", "m1", "m0"}},
		{"?query=", []string{"m3", "m2", "m1", "m0"}},
		{"?query=alpha", []string{"m3", "m0"}},
		{"?query=%25", []string{"m0"}},
		{"?query=a_x", []string{"m1"}},
		{"?query=nothing", nil},
		{"?before=3000", []string{"m1", "m0"}},
		{"?before=0", nil},
		{"?limit=2", []string{"m3", "m2"}},
		{"?query=alpha&before=4000&limit=1", []string{"m0"}},
	}
	for _, tt := range tests {
		t.Run("STO-12 "+tt.query, func(t *testing.T) {
			var got []string
			for _, row := range decode[dto.Archive](t, w.get("/api/archive/messages"+tt.query)).Messages {
				got = append(got, row.ID)
				if row.Recipients != "codex-api, stranger" {
					t.Errorf("recipients %q, want the names where known", row.Recipients)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	first := decode[struct{ Messages []map[string]any }](t, w.get("/api/archive/messages?limit=1")).Messages[0]
	for _, member := range []string{"id", "from_name", "from_agent", "to_target", "recipients", "body", "created_at", "hop", "reply_to"} {
		if _, ok := first[member]; !ok {
			t.Errorf("the row lacks %s", member)
		}
	}
	if len(first) != 9 {
		t.Errorf("the row has %d members, want exactly 9: %v", len(first), first)
	}
	for _, bad := range []string{"limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=", "limit=1e2", "before=-1", "before=", "before=x", "before=99999999999999999999", "query=" + strings.Repeat("a", 1_001)} {
		refused(t, bad, w.get("/api/archive/messages?"+bad), http.StatusBadRequest)
	}
}

// Every state that is asked as changes of an earlier one is the same as the whole one, and
// repeats no message and no session that has not changed (PGE-12).
func TestPGE_12_ChangesOfAStateGiveTheWholeOne(t *testing.T) {
	w := furnished(t)
	type lists struct {
		Tag      string            `json:"tag"`
		Since    string            `json:"since"`
		Messages []json.RawMessage `json:"messages"`
		Peers    []json.RawMessage `json:"peers"`
	}
	read := func(path string) (l lists, rest map[string]json.RawMessage) {
		t.Helper()
		body := []byte(w.get(path).body)
		if err := errors.Join(json.Unmarshal(body, &l), json.Unmarshal(body, &rest)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"since", "messages", "peers"} {
			delete(rest, name)
		}
		return l, rest
	}
	// complete replaces ids by the items of base, and counts them.
	complete := func(base, items []json.RawMessage) (whole []string, ids int) {
		t.Helper()
		known := map[string]string{}
		for _, item := range base {
			var id struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(item, &id); err != nil {
				t.Fatal(err)
			}
			known[id.ID] = string(item)
		}
		for _, item := range items {
			var id string
			if json.Unmarshal(item, &id) != nil {
				whole = append(whole, string(item))
				continue
			}
			ids++
			whole = append(whole, known[id])
		}
		return whole, ids
	}
	texts := func(items []json.RawMessage) (all []string) {
		for _, item := range items {
			all = append(all, string(item))
		}
		return all
	}
	claude := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}
	first, _ := read("/api/state")
	if first.Tag == "" {
		t.Fatal("the state has no tag")
	}
	bases := []lists{first}
	steps := []struct {
		name            string
		change          func()
		messages, peers int // unchanged since the state before
	}{
		{"nothing", w.broker.changed, 4, 2},
		{"a new message", func() {
			w.append(bridge.Message{ID: "m5", From: claude, To: "codex-api", ConversationID: "m5", Body: "And then?", CreatedAt: fixedTime.UnixMilli()}, "peer-2")
		}, 4, 2},
		{"a delivery", func() { w.mark(bridge.StageHanded, "m4", "peer-2", fixedTime.UnixMilli(), "hook PostToolUse") }, 4, 2},
		{"a session leaves", func() { w.broker.leave("peer-2") }, 4, 1},
	}
	for _, step := range steps {
		step.change()
		whole, wantRest := read("/api/state")
		for i, base := range bases {
			got, rest := read("/api/state?since=" + base.Tag)
			if got.Since != base.Tag {
				t.Errorf("%s: the changes since %q are of %q", step.name, base.Tag, got.Since)
			}
			messages, sameMessages := complete(base.Messages, got.Messages)
			peers, samePeers := complete(base.Peers, got.Peers)
			if diff := cmp.Diff([][]string{texts(whole.Messages), texts(whole.Peers)}, [][]string{messages, peers}); diff != "" {
				t.Errorf("%s, since %d states before (-whole +changes):\n%s", step.name, len(bases)-i, diff)
			}
			if diff := cmp.Diff(wantRest, rest); diff != "" {
				t.Errorf("%s (-whole +changes):\n%s", step.name, diff)
			}
			if i == len(bases)-1 && (sameMessages != step.messages || samePeers != step.peers) {
				t.Errorf("%s: %d messages and %d sessions are only ids, want %d and %d", step.name, sameMessages, samePeers, step.messages, step.peers)
			}
		}
		if bases = append(bases, whole); len(bases) == baseStates {
			bases = bases[1:]
		}
	}
	for _, tag := range []string{first.Tag, "unknown", ""} {
		if got, _ := read("/api/state?since=" + tag); got.Since != "" || len(got.Messages) == 0 || got.Messages[0][0] != '{' {
			t.Errorf("since %q: the answer is not a whole state", tag)
		}
	}
}
