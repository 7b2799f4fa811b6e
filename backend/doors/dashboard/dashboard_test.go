package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/decision"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

const testSecret config.Secret = "0123456789abcdef0123456789abcdef"

// fixedTime is the present of every test that shows times.
var fixedTime = time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC)

// TestMain fails the package when a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a dashboard on a real port over a real store.
type world struct {
	care    func() maintain.Maintenance // of kept alone
	t       *testing.T
	dir     string
	db      *store.DB
	broker  *liveBroker
	board   *Dashboard
	server  *httptest.Server
	tickets *guard.Tickets
	cookie  string // of request; made once, when it is first needed
	log     *logBuffer
	clock   *clock
}

// logBuffer collects the log of concurrent requests.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newWorld starts a dashboard; change may alter its options, and set Broker to
// nil for none.
func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), log: &logBuffer{}, clock: &clock{now: fixedTime}}
	db, err := store.Open(t.Context(), w.path(), store.Options{Now: w.clock.Now, Log: slog.New(slog.DiscardHandler), Index: filepath.Join(w.dir, "history.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.db = db
	w.broker = newLiveBroker(db, w.clock.Now)
	w.tickets = guard.NewTickets(w.clock.Now)
	opts := Options{
		Secret:  func() (config.Secret, error) { return testSecret, nil },
		Tickets: w.tickets,
		Reader:  func(context.Context) (Reader, error) { return db, nil },
		Broker:  w.broker,
		Agents:  toldAgents{},
		Page: fstest.MapFS{
			"index.html":    {Data: []byte("<!doctype html><title>Bridge</title>")},
			"assets/app.js": {Data: []byte("export {}")},
		},
		Instance: dto.Instance{Name: "here", Version: "1.2.3", Home: "/home/anna/.bridge"},
		Now:      w.clock.Now,
		Log:      slog.New(slog.NewTextHandler(w.log, nil)),
	}
	for _, c := range change {
		c(&opts)
	}
	w.board = New(opts)
	w.server = httptest.NewUnstartedServer(w.board)
	w.server.Config.ConnContext = w.board.ConnContext
	w.server.Start()
	t.Cleanup(func() {
		_ = w.board.Close()
		w.server.Close()
	})
	return w
}

func (w *world) path() string { return filepath.Join(w.dir, "bridge.db") }

func offline(o *Options) { o.Broker = nil }

// request makes a request that the guard lets through; change may spoil it.
func (w *world) request(method, path, body string, change ...func(*http.Request)) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.cookie == "" {
		if w.cookie, err = w.board.guard.NewCookie(); err != nil {
			w.t.Fatal(err)
		}
	}
	r.AddCookie(&http.Cookie{Name: guard.CookieName, Value: w.cookie})
	if guardFor(nil, r) == guard.Mutation {
		r.Header.Set("x-bridge", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (w *world) do(r *http.Request) answer {
	w.t.Helper()
	response, err := w.server.Client().Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func (w *world) get(path string) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodGet, path, ""))
}

func (w *world) post(path, body string) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, path, body))
}

// decode reads a 200 into T.
func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var value T
	if a.status != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Fatalf("decode %s: %v", a.body, err)
	}
	return value
}

// refused checks a refusal: its status and that it is one sentence in JSON.
func refused(t *testing.T, what string, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: status %d, want %d: %s", what, a.status, status, a.body)
		return
	}
	var wire map[string]string
	if err := json.Unmarshal([]byte(a.body), &wire); err != nil || len(wire) != 1 || wire["error"] == "" {
		t.Errorf("%s: body %q, want exactly {\"error\": sentence}", what, a.body)
	}
}

// liveBroker stands where the broker is: it resolves targets by the real rules
// and stores in the real store.
type liveBroker struct {
	db  *store.DB
	now func() time.Time

	mu       sync.Mutex
	roster   *session.Roster
	children map[string][]api.Child
	status   api.Status
	fail     error // what SendOwner and Status answer instead
	failSend error
	asked    int // Status calls
	sends    []api.SendArgs
	looked   []string // CheckChildren calls
	watchers map[lifecycle.Signal]struct{}
}

func newLiveBroker(db *store.DB, now func() time.Time) *liveBroker {
	return &liveBroker{
		db: db, now: now, roster: session.NewRoster(nil), children: map[string][]api.Child{},
		status:   api.Status{PID: 4242, Host: "serve", Since: now().UnixMilli(), Revision: 7},
		watchers: map[lifecycle.Signal]struct{}{},
	}
}

// join makes a session live and known to the store.
func (b *liveBroker) join(t testing.TB, s session.Session, children ...api.Child) {
	t.Helper()
	if s.Wake.MaxHops == 0 {
		s.Wake = session.Policy{AutoWake: true, MaxHops: 6}
	}
	peer := store.Peer{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, SeenAt: b.now().UnixMilli()}
	if err := b.db.SavePeer(context.Background(), peer); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.roster.Join(&s, s.Name)
	b.children[s.ID] = children
	b.mu.Unlock()
	b.changed()
}

// Changed is what the dashboard says itself.
func (b *liveBroker) Changed() { b.changed() }

func (b *liveBroker) leave(id string) {
	b.mu.Lock()
	b.roster.Leave(id)
	b.mu.Unlock()
	b.changed()
}

func (b *liveBroker) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.Revision++
	for watcher := range b.watchers {
		watcher.Notify()
	}
}

func (b *liveBroker) Status(context.Context) (api.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.fail != nil {
		return api.Status{}, b.fail
	}
	status := b.status
	for _, s := range b.roster.Live() {
		peer := api.Peer{
			ID: s.ID, Name: s.Name, Agent: s.Kind, Cwd: s.Cwd, State: "idle", Since: s.Since, Children: b.children[s.ID],
			AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect, Transport: "hooks", Wake: delivery.WakeOpen, Detail: "Hooks hand mail over.",
			Reach: delivery.WordsOf(factsOf(s)),
		}
		if s.Busy {
			peer.State = "busy"
		}
		if s.SessionID != "" {
			peer.SessionID = &s.SessionID
		}
		status.Peers = append(status.Peers, peer)
	}
	return status, nil
}

// factsOf tells of a session with hooks, one of which waits, and without a queue.
func factsOf(s *session.Session) delivery.Facts {
	return delivery.Facts{
		Kind: s.Kind, Name: s.Name, Busy: s.Busy, Hooks: true, Waiting: true, AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect,
	}
}

// Chat is what the real broker does without an agent's queue.
func (b *liveBroker) Chat(ctx context.Context, request chat.Request) (chat.Outcome, error) {
	target := delivery.Facts{Away: true}
	b.mu.Lock()
	if known, ok := b.roster.Known(request.Session); ok {
		target.Name = known.Name
	}
	if s, live := b.roster.Get(request.Session); live {
		target = factsOf(s)
	}
	children := b.children[request.Session]
	b.mu.Unlock()
	at := slices.IndexFunc(children, func(c api.Child) bool { return c.ID == request.Child })
	if request.Child != "" && at < 0 {
		return chat.Outcome{}, bridge.Errorf(bridge.Conflict, "%s has no native child of that id", target.Name)
	}
	route, body := delivery.To(target, request.Child, request.Body), request.Body
	if request.ToParent {
		route, body = delivery.Route{Transport: chat.Parent, Detail: "stored"}, chat.ParentNote(request.Child, children[at].Title, body)
	}
	if route.Transport == "" {
		return chat.Outcome{State: chat.NotSupported, Transport: chat.Parent, Detail: route.Detail}, nil
	}
	sent, err := b.SendOwner(ctx, request.Session, api.SendArgs{To: target.Name, Body: body, MessageID: request.MessageID})
	return chat.Outcome{State: chat.Queued, Transport: route.Transport, Message: sent.ID, Detail: route.Detail}, err
}

func (b *liveBroker) DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error) {
	rev, err := decision.New(args.Topic, args.Text, args.Scope, cwd)
	if err != nil {
		return api.DecideResult{}, err
	}
	return b.revise(ctx, rev, args.ID, args.Supersedes)
}

func (b *liveBroker) WithdrawOwner(ctx context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error) {
	rev, err := decision.NewWithdrawal(args.Topic, args.Reason)
	if err != nil {
		return api.DecideResult{}, err
	}
	return b.revise(ctx, rev, args.ID, args.Supersedes)
}

func (b *liveBroker) revise(ctx context.Context, rev decision.Revision, id, supersedes string) (api.DecideResult, error) {
	rev.ID, rev.Author, rev.CreatedAt = id, bridge.OwnerAddress(), b.now().UnixMilli()
	if supersedes != "" {
		rev.Supersedes = &supersedes
	}
	stored, _, err := b.db.RecordDecision(ctx, rev, func(decision.Revision) []decision.Notification { return nil })
	return api.DecideResult{Decision: stored}, err
}

func (b *liveBroker) SendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error) {
	b.mu.Lock()
	b.sends = append(b.sends, args)
	failure := b.failSend
	recipients, err := b.roster.Resolve(session.Everyone, bridge.OwnerID)
	if peerID != "" {
		var recipient session.Recipient
		recipient, err = b.roster.ByID(peerID)
		recipients = []session.Recipient{recipient}
	}
	b.mu.Unlock()
	if failure != nil {
		return api.SendResult{}, failure
	}
	if err != nil {
		return api.SendResult{}, err
	}
	if args.MessageID == "" {
		args.MessageID = fmt.Sprintf("owner-%d", len(b.sends))
	}
	message := bridge.Message{ID: args.MessageID, From: bridge.OwnerAddress(), To: args.To, ConversationID: args.MessageID, Body: args.Body, CreatedAt: b.now().UnixMilli()}
	result := api.SendResult{ID: message.ID, ConversationID: message.ConversationID}
	var rows []bridge.Message
	for _, recipient := range recipients {
		message.Recipient = recipient.ID
		rows = append(rows, message)
		result.Recipients = append(result.Recipients, api.Recipient{Name: recipient.Name, Online: recipient.Online})
	}
	if _, _, err := b.db.Append(ctx, rows); err != nil {
		return api.SendResult{}, err
	}
	b.changed()
	return result, nil
}

func (b *liveBroker) sent() []api.SendArgs {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]api.SendArgs{}, b.sends...)
}

// Work is that of a session that is at work for the second time.
func (b *liveBroker) Work(since int64) api.Work {
	at := fixedTime.UnixMilli()
	spans := slices.DeleteFunc([]api.Span{{From: at - 60_000, To: at - 30_000}, {From: at}}, func(s api.Span) bool { return s.To != 0 && s.To < since })
	return api.Work{Began: at - 600_000, Sessions: map[string]api.WorkTimes{"peer-1": {Spans: spans}}}
}

// Costs are those of a session with two days.
func (b *liveBroker) Costs() api.Costs {
	return api.Costs{BytesPerToken: session.BytesPerToken, KeptDays: 30, Sessions: []api.SessionCost{{
		ID: "peer-1", Name: "claude-app", Agent: bridge.Claude, Total: session.Cost{Tools: 2100, Notes: 300, Mail: 90, Notices: 12},
		Days: []api.DayTokens{
			{Day: "2026-02-03", Cost: session.Cost{Tools: 1050, Notes: 150, Mail: 40}},
			{Day: "2026-02-02", Cost: session.Cost{Tools: 1050, Notes: 150, Mail: 50, Notices: 12}},
		},
	}}}
}

// CheckChildren counts the looks.
func (b *liveBroker) CheckChildren(peerID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked = append(b.looked, peerID)
}

func (b *liveBroker) Watch() (<-chan struct{}, func()) {
	watcher := lifecycle.NewSignal()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[watcher] = struct{}{}
	return watcher, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, watcher)
	}
}

// store stores a message from one session to others.
func (w *world) store(id string, from bridge.Address, body string, to ...string) bridge.Message {
	w.t.Helper()
	message := bridge.Message{ID: id, From: from, To: strings.Join(to, ","), ConversationID: id, Body: body, CreatedAt: w.clock.Now().UnixMilli()}
	w.append(message, to...)
	return message
}

func (w *world) append(message bridge.Message, to ...string) {
	w.t.Helper()
	var rows []bridge.Message
	for _, recipient := range to {
		message.Recipient = recipient
		rows = append(rows, message)
	}
	if _, _, err := w.db.Append(w.t.Context(), rows); err != nil {
		w.t.Fatal(err)
	}
	w.broker.changed()
}

// eventually polls until ok or the deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
