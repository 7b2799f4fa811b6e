package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/mail"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/rules"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

const (
	testToken = "a-token-of-sufficient-length"
)

// bench is a broker with jobs on a real store and a real socket, which a test may
// end and start again. Runners are scripted: starts tells whose turn it is.
type bench struct {
	rules      Rules
	t          *testing.T
	home       config.Home
	asked      sync.Mutex  // guards owner and now
	owner      config.Jobs // what the owner allows
	hold       bool
	fails      atomic.Bool            // no message can be stored
	stored     atomic.Pointer[func()] // is told of the next message that was stored
	archiveAge time.Duration
	look       time.Duration          // how often it looks by itself
	meanwhile  atomic.Pointer[func()] // what happens once, while the owner is asked
	starts     chan string            // the folders of started runners
	start      func(folder string) (int, error)
	git        *gitwork.Git
	now        func() time.Time
	agents     Agents // nil refuses nothing
	linked     func() // has what comes up reach other PCs; nil reaches none

	jobs   *Jobs
	broker *broker.Broker
	db     *store.DB
	server *ipc.Server
	socket net.Listener
}

// work is the folder in which the sessions of the test work, beside the home.
func (b *bench) work() string {
	folder := filepath.Join(filepath.Dir(b.home.Dir()), "work")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		b.t.Fatal(err)
	}
	return folder
}

// allow changes what the owner allows.
func (b *bench) allow(change func(*config.Jobs)) {
	b.asked.Lock()
	defer b.asked.Unlock()
	change(&b.owner)
}

// setNow sets the clock, also while everything runs.
func (b *bench) setNow(now func() time.Time) {
	b.asked.Lock()
	defer b.asked.Unlock()
	b.now = now
}

func (b *bench) clock() time.Time {
	b.asked.Lock()
	now := b.now
	b.asked.Unlock()
	return now()
}

func (b *bench) settings() (config.Jobs, error) {
	if meanwhile := b.meanwhile.Swap(nil); meanwhile != nil {
		(*meanwhile)()
	}
	b.asked.Lock()
	defer b.asked.Unlock()
	if b.owner.MaxAccess == "damaged" {
		return config.Jobs{}, bridge.Errorf(bridge.Invalid, "config.json is damaged")
	}
	return b.owner, nil
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := prepared(t)
	b.up()
	return b
}

func prepared(t *testing.T) *bench {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, home: home, owner: config.Jobs{Enabled: true}, starts: make(chan string, 300), now: time.Now, look: 5 * time.Millisecond}
	b.start = func(folder string) (int, error) {
		b.starts <- folder
		return os.Getpid(), nil
	}
	t.Cleanup(b.down)
	return b
}

func (b *bench) options() Options {
	return Options{
		Home: b.home, Settings: b.settings, Broker: post{b.broker, b}, Transcripts: b.db, Start: func(folder string) (int, error) { return b.start(folder) },
		ArchiveAge: b.archiveAge, Rules: b.rules,
		Hold: b.hold, Git: b.git, Agents: b.agents, Now: b.clock, Log: slog.New(slog.DiscardHandler),
		Timing: Timing{PollInterval: b.look, Grace: time.Hour, Reclaim: time.Hour},
	}
}

// post is a broker that stores no message while that fails, and tells of each.
type post struct {
	Broker
	b *bench
}

func (p post) Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error {
	if p.b.fails.Load() {
		return bridge.Errorf(bridge.Storage, "the disk is full")
	}
	err := p.Broker.Deliver(ctx, from, peerID, args)
	if tell := p.b.stored.Swap(nil); tell != nil {
		(*tell)()
	}
	return err
}

func (b *bench) up() {
	b.t.Helper()
	ctx, log := b.t.Context(), slog.New(slog.DiscardHandler)
	var err error
	if b.db, err = store.Open(ctx, b.home.DB(), store.Options{Now: time.Now, Log: log, Index: b.home.History()}); err != nil {
		b.t.Fatal(err)
	}
	b.broker, err = broker.New(ctx, broker.Options{
		Home: b.home, Settings: func() (config.Settings, error) { return b.home.Settings(func(string) string { return "" }) },
		DB: b.db, Now: time.Now, Log: log, Host: "serve", Version: "test", URL: func() string { return "" }, Retire: func() {}, Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	standing := rules.Open(rules.Options{Path: filepath.Join(b.home.Dir(), config.RulesStore), Now: b.clock, Log: log})
	b.rules = standing
	if b.jobs, err = Open(b.options()); err != nil {
		b.t.Fatal(err)
	}
	standing.OnTakenBack(b.jobs.TookBack)
	b.broker.Delegate(b.jobs)
	b.jobs.Run()
	if b.linked != nil {
		b.linked()
	}
	if b.socket, err = ipc.Listen(b.home.Socket()); err != nil {
		b.t.Fatal(err)
	}
	b.server = ipc.NewServer(testToken, b.broker, log)
	go b.server.Serve(b.socket) //nolint:errcheck // ends with the listener
}

func (b *bench) down() {
	if b.socket == nil {
		return
	}
	b.socket.Close()
	b.server.Close()
	b.jobs.Close()
	b.broker.Close()
	b.db.Close()
	b.socket = nil
}

func (b *bench) dial(role api.Role) *ipc.Client {
	b.t.Helper()
	client, err := ipc.Dial(b.t.Context(), ipc.Target{Socket: b.home.Socket(), Token: testToken}, ipc.Hello{Role: role, PID: 1, Version: "test"})
	if err != nil {
		b.t.Fatalf("dial as %s: %v", role, err)
	}
	b.t.Cleanup(func() { client.Close() })
	return client
}

// session is one scripted session of claude.
type session struct {
	*ipc.Client
	api.Registered
	b *bench
}

func (b *bench) join(name, sessionID string) session {
	b.t.Helper()
	s := session{Client: b.dial(api.RoleSession), b: b}
	var err error
	s.Registered, err = s.Register(b.t.Context(), api.Register{Kind: bridge.Claude, Name: name, SessionID: sessionID, Cwd: b.work()})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// spawn asks for a job of that name by its last digits.
func (s session) spawn(hex, args string) (api.Spawned, error) {
	return s.Spawn(s.b.t.Context(), api.SpawnArgs{Kind: bridge.Codex, Name: "codex-job-000000" + hex, Args: json.RawMessage(args)})
}

func (s session) mustSpawn(hex, args string) api.Spawned {
	s.b.t.Helper()
	spawned, err := s.spawn(hex, args)
	if err != nil {
		s.b.t.Fatalf("spawn %s: %v", hex, err)
	}
	return spawned
}

func (s session) say(name, words string) (api.JobMessaged, error) {
	return s.JobMessage(s.b.t.Context(), api.JobMessageArgs{ID: "say-" + words[:1], Args: job.MessageArgs{Job: name, Message: words}})
}

// mail takes the mail that waits, or that comes within the patience where some is
// wanted.
func (s session) mail(want int) []api.InboxMessage {
	s.b.t.Helper()
	var all []api.InboxMessage
	eventually(s.b.t, "the mail of "+s.Name, func() bool {
		box, err := s.Inbox(s.b.t.Context(), api.InboxArgs{MarkRead: true})
		if err != nil {
			s.b.t.Fatal(err)
		}
		all = append(all, box.Messages...)
		if box.Lease != nil {
			if err := s.Ack(s.b.t.Context(), api.Ack{Lease: *box.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"}); err != nil {
				s.b.t.Fatal(err)
			}
		}
		return len(all) >= want
	})
	if len(all) != want {
		s.b.t.Fatalf("%s has %d messages, want %d: %+v", s.Name, len(all), want, all)
	}
	return all
}

// eventually waits for what sends no signal.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(testkit.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, testkit.Patience)
		case <-tick.C:
		}
	}
}

// runner is one scripted runner.
type runner struct {
	*ipc.Client
	b      *bench
	folder string
	spec   runs.SpecFile
}

// started is the runner of the next job that was started, not connected yet.
func (b *bench) started() *runner {
	b.t.Helper()
	select {
	case folder := <-b.starts:
		return b.runnerIn(folder)
	case <-time.After(testkit.Patience):
		b.t.Fatal("no runner was started")
		return nil
	}
}

func (b *bench) runnerIn(folder string) *runner {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "spec.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	spec, err := runs.DecodeSpec(data, filepath.Base(folder))
	if err != nil {
		b.t.Fatal(err)
	}
	return &runner{b: b, folder: folder, spec: spec}
}

// connect says hello, with what there is to tell.
func (r *runner) connect(report api.RunnerReport) api.RunnerReported {
	r.b.t.Helper()
	r.Client = r.b.dial(api.RoleRunner)
	answer, err := r.RunnerHello(r.b.t.Context(), api.RunnerHello{Job: r.spec.Job, Run: r.spec.Run, Token: r.spec.Token, Report: report})
	if err != nil {
		r.b.t.Fatalf("hello of %s: %v", r.spec.Job, err)
	}
	return answer
}

func (r *runner) report(report api.RunnerReport) api.RunnerReported {
	r.b.t.Helper()
	answer, err := r.RunnerReport(r.b.t.Context(), report)
	if err != nil {
		r.b.t.Fatalf("report of %s: %v", r.spec.Job, err)
	}
	return answer
}

// work says that the agent works in its session.
func (r *runner) work() {
	r.b.t.Helper()
	r.report(api.RunnerReport{State: r.state(job.Running)})
}

func (r *runner) state(state job.State) *runs.StateFile {
	return &runs.StateFile{Job: r.spec.Job, Run: r.spec.Run, State: state, Session: "thread-" + r.spec.Job, Model: "gpt", Step: "reads", Tokens: 7}
}

// end writes the envelope as a runner does, never half of it: the broker may be reading
// it. It returns what the runner reports then.
func (r *runner) end(outcome job.Outcome, words string) api.RunnerReport {
	r.b.t.Helper()
	envelope := runs.NewEnvelope(r.spec.Job, r.spec.Run, outcome, words, runs.Evidence{Tokens: 42}, time.Now())
	data, err := envelope.Encode()
	if err == nil {
		err = disk.WriteAtomic(filepath.Join(r.folder, "envelope.json"), data, disk.PrivateFile)
	}
	if err != nil {
		r.b.t.Fatal(err)
	}
	return api.RunnerReport{Result: &api.RunnerResult{Run: r.spec.Run, MessageID: envelope.MessageID, State: outcome.State, Bytes: int64(len(data))}}
}

// finish ends the run with an answer.
func (r *runner) finish(words string) {
	r.b.t.Helper()
	if !r.report(r.end(answered, words)).Taken {
		r.b.t.Fatalf("the result of %s is not taken", r.spec.Job)
	}
}

// orders waits for orders.
func (r *runner) orders() []api.Order {
	r.b.t.Helper()
	ctx, cancel := context.WithTimeout(r.b.t.Context(), testkit.Patience)
	defer cancel()
	orders, err := r.RunnerWait(ctx)
	if err != nil {
		r.b.t.Fatalf("orders of %s: %v", r.spec.Job, err)
	}
	return orders.Orders
}

var answered = job.Outcome{State: job.Finished, Ended: job.EndAnswer}

// entry is a job as jobs.json has it.
func (b *bench) entry(name string) map[string]any {
	b.t.Helper()
	var file struct {
		Jobs []map[string]any `json:"jobs"`
	}
	data, err := os.ReadFile(filepath.Join(b.home.Dir(), "jobs.json"))
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for _, object := range file.Jobs {
		if object["name"] == name {
			return object
		}
	}
	return nil
}

func (b *bench) state(name string) job.State {
	entry, err := b.jobs.find(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return entry.State
}

func wantCode(t *testing.T, what string, err error, code bridge.Code) {
	t.Helper()
	if bridge.CodeOf(err) != code {
		t.Errorf("%s: %v, want code %q", what, err, code)
	}
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not hold %q", text, part)
		}
	}
}

var errNoProgram = errors.New("no such program")
