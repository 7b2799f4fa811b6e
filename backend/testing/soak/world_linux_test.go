// Package soak ends brokers and sessions by force under load, again and again,
// and counts every message and decision on the way: what was acknowledged
// arrives, and nothing arrives twice (rows MSG-01, MSG-04, MSG-06, DEC-12). It also
// records what each client saw, and has the history checked (row PRF-01).
package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bridge/backend/agent/driver/standin"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/soak/history"
	"bridge/backend/testing/testkit"
)

const (
	sessions = 20
	// available is how soon another broker must serve, in the middle of all kills
	// and at the latest (MSG-01): one of many may meet a machine that stalls. On a
	// machine that starts a process slowly, it may take takeoverStarts starts of a
	// program that opens no store: the check of the home and the broker each take several.
	available      = 2 * time.Second
	latest         = 10 * time.Second
	takeoverStarts = 20
	// sendEvery and hookEvery pace one session.
	sendEvery = 25 * time.Millisecond
	hookEvery = 400 * time.Millisecond
	// settle is how long the last messages may take after the last kill.
	settle = 60 * time.Second
)

var (
	program string // the real binary, with those that lie beside it
	folder  string // of the binaries that tests build
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if settings := os.Getenv(hostEnv); settings != "" {
		return runHost(settings)
	}
	if len(os.Args) > 1 && os.Args[1] == floodAgent {
		runFlood()
		return 0
	}
	if filepath.Base(os.Args[0]) == agentName {
		noteStart()
		standin.Run(os.Args[1:])
		return 0
	}
	if err := os.Setenv("BRIDGE_PORT", "0"); err != nil { // the default port is the developer's own
		panic(err)
	}
	var flags []string
	if os.Getenv("BRIDGE_SOAK_RACE") != "" {
		flags = append(flags, "-race")
	}
	var err error
	if folder, err = os.MkdirTemp("", "soak-bin"); err == nil {
		defer os.RemoveAll(folder)
		program, err = testkit.Product(folder, flags...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testkit.Away(m)
}

// world is one home with its sessions.
type world struct {
	*testing.T
	home   config.Home
	dir    string
	actors []*actor

	registry registry // of its jobs
	history  *history.Recorder
	begun    history.Call // before anything was done
	holders  []*holder

	stop        context.Context // ends the load
	decideEvery time.Duration   // paces the decisions of one session
	running     sync.WaitGroup
	// answered is told about answers that carried mail, when somebody listens.
	answered chan struct{}

	mu        sync.Mutex
	sent      map[string]string // acknowledged message id -> name of its recipient
	decided   map[string]bool   // decision token -> acknowledged
	seen      map[string][]sighting
	refused   int // tool calls that failed and were repeated
	takeovers []time.Duration
	starts    []time.Duration // of a process that needs no broker, one before each kill
	slowest   time.Duration   // of all looks into an inbox: so busy is the machine
}

// sighting is one arrival of a token in a session's context.
type sighting struct {
	at   time.Time
	life int // which of the session's processes it was
	how  string
}

// actor is one session; its process may be replaced.
type actor struct {
	w      *world
	name   string
	kind   bridge.AgentKind
	mu     sync.Mutex
	proc   *server
	life   int
	killed map[int]time.Time
	count  atomic.Int64
}

func newWorld(t *testing.T) *world {
	w := emptyWorld(t)
	kinds := bridge.Kinds()
	for i := range sessions {
		a := &actor{w: w, name: fmt.Sprintf("s%02d", i), kind: kinds[i%len(kinds)], killed: map[int]time.Time{}}
		w.actors = append(w.actors, a)
	}
	var starting sync.WaitGroup
	for _, a := range w.actors {
		starting.Go(func() { a.start() })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	w.await("all sessions are registered", settle, func() bool { return len(w.status().Peers) == sessions })
	return w
}

// emptyWorld is a home without a session.
func emptyWorld(t *testing.T) *world {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		t.Fatal(err)
	}
	home, err := config.ResolveHome(filepath.Join(dir, "h"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, home: home, dir: dir, answered: make(chan struct{}), history: &history.Recorder{},
		sent: map[string]string{}, decided: map[string]bool{}, seen: map[string][]sighting{},
	}
	w.begun = w.history.Begin("test")
	t.Cleanup(w.close)
	return w
}

func (a *actor) start() {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	s, err := startServer(ctx, program, "mcp", "--home", a.w.home.Dir(), "--agent", string(a.kind), "--name", a.name, "--session", "host-"+a.name, "--cwd", a.w.dir)
	if err != nil {
		a.w.Errorf("start %s: %v", a.name, err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proc = s
	a.life++
}

func (a *actor) server() (*server, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.proc, a.life
}

// replace kills the session's process and starts another for the same session.
func (a *actor) replace() {
	s, life := a.server()
	a.mu.Lock()
	a.killed[life] = time.Now()
	a.mu.Unlock()
	killing := a.w.history.Begin("test")
	s.kill()
	killing.Cut(history.Dropped{To: a.name, Conn: a.conn(life), Died: true})
	a.start()
}

// conn names one of the session's processes in the history.
func (a *actor) conn(life int) string { return fmt.Sprintf("%s/%d", a.name, life) }

// load starts the traffic; ending stops it and waits for what is under way.
// A soak of n kills makes few hundred decisions, however long it is: no home
// has more in force, and each session hears of all.
func (w *world) load(n int) (ending func()) {
	w.decideEvery = time.Duration(max(1, n/20)) * time.Second
	stop, cancel := context.WithCancel(context.Background())
	w.stop = stop
	w.addHolders()
	for _, a := range w.actors {
		w.running.Go(a.sends)
		w.running.Go(a.readsInbox)
		w.running.Go(a.waits)
		w.running.Go(a.decides)
		if a.kind == bridge.Claude {
			w.running.Go(a.hooks)
		}
	}
	w.running.Go(w.readsDecisions)
	for _, h := range w.holders {
		w.running.Go(func() { w.every(holdEvery, h.step) })
	}
	return func() {
		cancel()
		w.running.Wait()
	}
}

// every runs work at a pace until the load ends.
func (w *world) every(pace time.Duration, work func()) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			work()
		case <-w.stop.Done():
			return
		}
	}
}

// patiently repeats a call that failed until it is answered: this is what a
// model does, with the same message id.
func (a *actor) patiently(what string, call func(ctx context.Context, s *server) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	for {
		s, _ := a.server()
		err := call(ctx, s)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			a.w.Errorf("%s: %s never succeeded: %v", a.name, what, err)
			return false
		}
		if !errors.Is(err, errEnded) {
			a.w.mu.Lock()
			a.w.refused++
			a.w.mu.Unlock()
			a.w.Logf("%s: %s: %v", a.name, what, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (a *actor) sends() {
	a.w.every(sendEvery, func() {
		actor := a.w.actors[rand.IntN(sessions)]
		if actor == a {
			return
		}
		id := fmt.Sprintf("tok-%s-%d", a.name, a.count.Add(1))
		ok := a.patiently("send", func(ctx context.Context, s *server) error {
			var sent struct{ ID string }
			call := a.w.history.Begin(a.name)
			err := s.call(ctx, "send", map[string]any{"to": actor.name, "message": "body [" + id + "]", "message_id": id}, &sent)
			call.Finish(history.Send{To: actor.name, ID: id}, err == nil)
			if err == nil && sent.ID != id {
				a.w.Errorf("%s: send answered id %q, want %q", a.name, sent.ID, id)
			}
			return err
		})
		if ok {
			a.w.mu.Lock()
			a.w.sent[id] = actor.name
			a.w.mu.Unlock()
		}
	})
}

func (a *actor) decides() {
	a.w.every(a.w.decideEvery, func() {
		n := a.count.Add(1)
		if n%2 == 0 {
			a.replacesDecision(n)
			return
		}
		token := fmt.Sprintf("dec-%s-%d", a.name, n)
		a.w.mu.Lock()
		a.w.decided[token] = false
		a.w.mu.Unlock()
		if !a.decide(token, token, true) {
			return // it may be recorded or not: then it must not arrive twice
		}
		a.w.mu.Lock()
		a.w.decided[token] = true
		a.w.mu.Unlock()
	})
}

func (a *actor) readsInbox() { a.w.every(40*time.Millisecond, func() { a.inbox() }) }

// inboxMost is how many messages one answer may hold.
const inboxMost = 100

type shown struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

func (a *actor) inbox() (remaining int) {
	s, life := a.server()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	var box struct {
		Messages  []shown `json:"messages"`
		Remaining int     `json:"remaining"`
	}
	began, call := time.Now(), a.w.history.Begin(a.name)
	if s.call(ctx, "inbox", map[string]any{"limit": inboxMost}, &box) != nil {
		call.Cut(history.Inbox{To: a.name, Conn: a.conn(life)})
		return -1
	}
	var all strings.Builder
	for _, m := range box.Messages {
		all.WriteString(m.Body)
	}
	a.shown(call, life, all.String(), len(box.Messages) < inboxMost)
	a.w.mu.Lock()
	a.w.slowest = max(a.w.slowest, time.Since(began))
	a.w.mu.Unlock()
	for _, m := range box.Messages {
		a.saw(m.Body, life, "inbox")
	}
	return box.Remaining
}

func (a *actor) waits() {
	for a.w.stop.Err() == nil {
		s, life := a.server()
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		var m struct {
			shown
			TimedOut bool `json:"timedOut"`
		}
		call := a.w.history.Begin(a.name)
		err := s.call(ctx, "wait_for_message", map[string]any{"timeout_sec": 1}, &m)
		cancel()
		switch {
		case err == nil && !m.TimedOut:
			a.shown(call, life, m.Body, false)
			a.saw(m.Body, life, "wait")
		case err != nil:
			call.Cut(history.Inbox{To: a.name, Conn: a.conn(life)})
			select { // its process is being replaced
			case <-time.After(20 * time.Millisecond):
			case <-a.w.stop.Done():
			}
		}
	}
}

// hooks makes real hook calls beside the tools, as the agent does.
func (a *actor) hooks() {
	a.w.every(hookEvery, func() { a.hook("PostToolUse") })
}

func (a *actor) hook(event string) {
	_, life := a.server()
	input := fmt.Sprintf(`{"session_id":"host-%s","hook_event_name":"%s","cwd":%q,"tool_name":"Bash"}`, a.name, event, a.w.dir)
	cmd := exec.Command(program, "hook", string(a.kind), event, "--home", a.w.home.Dir())
	cmd.Stdin = strings.NewReader(input)
	var output bytes.Buffer
	cmd.Stdout = &output
	call := a.w.history.Begin(a.name)
	if err := cmd.Run(); err != nil {
		a.w.Errorf("hook of %s: %v", a.name, err)
	}
	if !json.Valid(output.Bytes()) {
		a.w.Errorf("hook of %s printed %q", a.name, output.String())
	}
	a.shown(call, life, output.String(), false)
	a.saw(output.String(), life, "hook")
}

// token marks the texts of the load: of messages, of decisions, and of decisions that
// replace each other.
var token = regexp.MustCompile(`\[((?:tok|dec|cha)-[a-z0-9-]+)\]`)

// tokensOf returns the tokens in a text.
func tokensOf(text string) (tokens []string) {
	for _, found := range token.FindAllStringSubmatch(text, -1) {
		tokens = append(tokens, found[1])
	}
	return tokens
}

// saw counts every token that came into the session's context.
func (a *actor) saw(text string, life int, how string) {
	found := token.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return
	}
	a.w.mu.Lock()
	for _, f := range found {
		key := a.name + " " + f[1]
		a.w.seen[key] = append(a.w.seen[key], sighting{time.Now(), life, how})
	}
	a.w.mu.Unlock()
	select {
	case a.w.answered <- struct{}{}:
	default: // nobody waits for one
	}
}

// owner connects as the owner's command line does.
func (w *world) owner(ctx context.Context) (*ipc.Client, error) {
	token, err := w.home.ExistingToken()
	if err != nil {
		return nil, err
	}
	return ipc.Dial(ctx, ipc.Target{Socket: w.home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: "soak"})
}

func (w *world) status() api.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := w.owner(ctx)
	if err != nil {
		return api.Status{}
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return api.Status{}
	}
	return status
}

// broker is the process that serves now, 0 when none does.
func (w *world) broker() int {
	ctx, cancel := context.WithTimeout(context.Background(), available)
	defer cancel()
	client, err := w.owner(ctx)
	if err != nil {
		return 0
	}
	defer client.Close()
	return client.Welcome().PID
}

// killBroker ends the broker that serves and measures until another does.
func (w *world) killBroker() {
	w.Helper()
	pid := 0
	w.await("a broker serves", settle, func() bool { pid = w.broker(); return pid != 0 })
	if !w.ours(pid) {
		w.Fatalf("process %d serves this home and is not ours", pid)
	}
	w.starts = append(w.starts, w.startOfProgram())
	killing := w.history.Begin("test")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.Errorf("kill the broker %d: %v", pid, err)
		return
	}
	began := time.Now()
	w.await("another broker serves", settle, func() bool {
		w.oneListener()
		next := w.broker()
		return next != 0 && next != pid
	})
	killing.End(history.Crash{})
	w.takeovers = append(w.takeovers, time.Since(began))
}

// startOfProgram runs a command of the program that needs no broker, and returns its time:
// what the start of a process costs under the load.
func (w *world) startOfProgram() time.Duration {
	began := time.Now()
	if output, err := exec.Command(program, "version").CombinedOutput(); err != nil {
		w.Errorf("bridge version: %v: %s", err, output)
	}
	return time.Since(began)
}

// ours reports whether a process was started for this world's home.
func (w *world) ours(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(w.home.Dir()))
}

// oneListener checks that no two processes offer the home's socket: only a
// broker that holds the election does.
func (w *world) oneListener() {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		w.Fatal(err)
	}
	listening := 0
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) == 8 && fields[7] == w.home.Socket() && fields[3] == "00010000" {
			listening++
		}
	}
	if listening > 1 {
		w.Errorf("%d brokers listen at once", listening)
	}
}

func (w *world) await(what string, patience time.Duration, done func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			w.Fatalf("never: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// drained waits until every acknowledged message and decision has arrived.
func (w *world) drained() {
	w.Helper()
	deadline := time.Now().Add(settle)
	var missing []string
	for {
		for _, a := range w.actors {
			a.inbox()
		}
		if missing = w.missing(); len(missing) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(missing) > 0 {
		w.Errorf("%d acknowledged deliveries never arrived, among them %v", len(missing), missing[:min(5, len(missing))])
	}
}

func (w *world) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	for id, to := range w.sent {
		if len(w.seen[to+" "+id]) == 0 {
			missing = append(missing, to+" "+id)
		}
	}
	for token, acknowledged := range w.decided {
		for _, a := range w.actors {
			if acknowledged && len(w.seen[a.name+" "+token]) == 0 {
				missing = append(missing, a.name+" "+token)
			}
		}
	}
	return missing
}

// justBefore is how long a session may take from showing mail to acknowledging
// it, beside what the slowest call of the run took.
const justBefore = 3 * time.Second

// noneTwice checks what came into the sessions' contexts. A session whose
// process was killed may be shown again what it was shown just before, each time
// that it is killed so: nothing could acknowledge it any more.
func (w *world) noneTwice() (allowed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byName := map[string]*actor{}
	for _, a := range w.actors {
		byName[a.name] = a
	}
	reported := 0
	for key, seen := range w.seen {
		if len(seen) == 1 {
			continue
		}
		name, _, _ := strings.Cut(key, " ")
		if byName[name].diedAfterEach(seen[:len(seen)-1]) {
			allowed++
			continue
		}
		if reported++; reported <= 5 {
			w.Errorf("%s arrived %d times: %+v", key, len(seen), seen)
		}
	}
	if reported > 0 {
		w.Errorf("%d deliveries arrived more than once", reported)
	}
	return allowed
}

// diedAfterEach reports whether the session's process was killed just after each
// of these arrivals. The world is locked.
func (a *actor) diedAfterEach(seen []sighting) bool {
	for _, sighting := range seen {
		killed, wasKilled := a.killed[sighting.life]
		if !wasKilled || killed.Sub(sighting.at) >= justBefore+a.w.slowest {
			return false
		}
	}
	return true
}

// storeAgrees compares the database with what was acknowledged.
func (w *world) storeAgrees() {
	ctx := context.Background()
	reader, err := store.OpenReader(ctx, w.home.DB())
	if err != nil {
		w.Fatal(err)
	}
	defer reader.Close()
	for id := range w.sent {
		row, err := reader.Find(ctx, id)
		if err != nil {
			w.Errorf("acknowledged message %s: %v", id, err)
			continue
		}
		if len(row.Deliveries) != 1 {
			w.Errorf("message %s is stored %d times", id, len(row.Deliveries))
		}
	}
	unread, err := reader.UnreadCounts(ctx)
	if err != nil {
		w.Fatal(err)
	}
	if len(unread) > 0 {
		w.Errorf("unread at the end: %v", unread)
	}
}

// quiet ends every session and the broker, and looks for left-over processes.
func (w *world) quiet() {
	for _, a := range w.actors {
		s, _ := a.server()
		if err := s.close(); err != nil {
			w.Errorf("%s ended with %v", a.name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if client, err := w.owner(ctx); err == nil {
		_ = client.Retire(ctx) // it may end before its answer is out
		client.Close()
	}
	w.await("no process of this home is left", settle, func() bool { return len(w.processes()) == 0 })
}

func (w *world) processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.Fatal(err)
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && w.ours(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// close ends whatever a failed test left and shows the broker's log.
func (w *world) close() {
	if w.Failed() {
		if log, err := os.ReadFile(w.home.Log()); err == nil {
			w.Logf("the end of the broker's log:\n%s", log[max(0, len(log)-4000):])
		}
	}
	for range 3 {
		for _, pid := range w.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	if !w.Failed() {
		_ = os.RemoveAll(w.dir) // a failed run stays to be looked at
	}
}
