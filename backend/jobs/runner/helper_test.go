package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/standin"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// The test's own program is also the agent's CLI and the runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "standin":
			standin.Run(os.Args[2:])
			return
		case "sandbox-exec":
			println(sandbox.Main(os.Args[2:], os.Environ()).Error())
			os.Exit(1)
		case "test-run-job":
			os.Exit(testRunJob(os.Args[2:]))
		}
	}
	folder, err := os.MkdirTemp("", "bridge-worker")
	if err == nil {
		worker := filepath.Join(folder, "bridge-worker")
		err = errors.Join(testkit.Build(worker, "bridge/cmd/bridge-worker"), os.Setenv(sandboxEnv, worker))
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		println(err.Error())
	}
	_ = os.RemoveAll(folder) // it is the system's to clear else
	os.Exit(code)
}

// sandboxEnv names the program that puts git below the sandbox: a whole one, for one that
// the race detector watches takes a second to end, and there are thousands of gits.
const sandboxEnv = "BRIDGE_TEST_WORKER"

const jobName = "claude-job-0a1b2c3d"

// bench is a home with one job in it.
type bench struct {
	*testing.T
	home   string
	folder string
	work   string // where the job works
	broker *memory
	setUp  []string
	drive  job.Driver // nil for the claude stand-in
	at     func(Step)
	wait   time.Duration
	look   time.Duration
	floor  bool // jobs can have the floor
	// reserved says that jobs may not write in the home.
	reserved bool
	// unscoped says that the kernel does not keep signals in the sandbox.
	unscoped bool
	// maxProcesses bounds the run's processes; 0 sets no bound.
	maxProcesses int
	// writable are the folders of jobs.writable.
	writable []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	home := t.TempDir()
	b := &bench{T: t, home: home, folder: filepath.Join(home, "jobs", jobName), work: t.TempDir(), broker: newMemory(), wait: testkit.Patience}
	if err := os.MkdirAll(b.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a test that fails leaves nothing either
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := sandbox.End(ctx, sandbox.Mark{Job: jobName, Token: b.token()}, nil); err != nil {
			t.Error(err)
		}
	})
	return b
}

// token is the secret of the bench's job, which no other test has.
func (b *bench) token() string { return "secret" + strings.ReplaceAll(b.home, "/", "-") }

// spec asks for a run.
func (b *bench) spec(prompt string, change ...func(*runs.SpecFile)) runs.SpecFile {
	b.Helper()
	spec := runs.SpecFile{
		Job: jobName, Run: 1, Kind: bridge.Claude, PromptID: "0a1b2c3d-0000-4000-8000-000000000001", Prompt: prompt, Folder: b.work,
		Access: job.AccessAsk, TimeoutSec: 86_400, Supervisor: "boss", Depth: 1, Token: b.token(), Title: "a job",
	}
	for _, call := range change {
		call(&spec)
	}
	data, err := spec.Encode()
	if err == nil {
		err = os.WriteFile(filepath.Join(b.folder, "spec.json"), data, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return spec
}

func testOptions(home, folder string) Options {
	opts := gitwork.Options{Environ: append(os.Environ(), "HOME="+home), Home: home}
	if sandbox.Available() == nil {
		opts.Sandbox = []string{os.Getenv(sandboxEnv), "sandbox-exec"}
	}
	git, err := gitwork.Open(opts)
	if err != nil {
		panic(err)
	}
	return Options{
		Folder: folder, Logs: filepath.Join(home, "runs"), Approvals: filepath.Join(home, "approvals"), Worktrees: filepath.Join(home, "worktrees"),
		Driver: driver.For, CheckFolder: func(string) error { return nil }, Git: git, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Fit: func(spec job.Spec) (job.Spec, error) {
			self, err := os.Executable()
			spec.Command, spec.Env = []string{self, "standin"}, []string{"HOME=" + home, testkit.QuickExit}
			return spec, err
		},
	}
}

func (b *bench) options() Options {
	o := testOptions(b.home, b.folder)
	o.MaxProcesses, o.Writable = b.maxProcesses, b.writable
	o.ScopesSignals = func() bool { return !b.unscoped }
	o.Broker, o.Timeout, o.SetUp, o.At, o.LookEvery = b.broker.connect, b.wait, b.setUp, b.at, b.look
	if fit := o.Fit; b.floor {
		o.Fit = func(spec job.Spec) (job.Spec, error) {
			spec, err := fit(spec)
			spec.Sandbox = []string{spec.Command[0], "sandbox-exec"}
			return spec, err
		}
	}
	if b.reserved {
		home, err := config.ResolveHome(b.home, os.Getenv)
		if err != nil {
			b.Fatal(err)
		}
		o.CheckFolder = config.ReservedFolders(home, os.Getenv).Check
	}
	if b.drive != nil {
		o.Git, o.Driver = nil, func(bridge.AgentKind) (job.Driver, error) { return b.drive, nil }
	}
	return o
}

// run runs the job to its end and returns the envelope.
func (b *bench) run() runs.Envelope {
	b.Helper()
	if err := Run(b.Context(), b.options()); err != nil {
		b.Fatalf("Run: %v", err)
	}
	return b.envelope()
}

// begin runs the job beside the test; the channel brings what Run returns.
func (b *bench) begin() <-chan error {
	done := make(chan error, 1)
	go func() { done <- Run(context.WithoutCancel(b.Context()), b.options()) }()
	return done
}

func (b *bench) envelope() runs.Envelope {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.folder, "envelope.json"))
	if err != nil {
		b.Fatal(err)
	}
	envelope, err := runs.DecodeEnvelope(data, jobName)
	if err != nil {
		b.Fatal(err)
	}
	return envelope
}

func (b *bench) state() runs.StateFile {
	b.Helper()
	state, err := files(b.folder).state()
	if err != nil {
		b.Fatal(err)
	}
	return state
}

// kinds lists the journal's entries of one kind.
func (b *bench) entries(kind EntryKind) []Entry {
	b.Helper()
	all, err := files(b.folder).entries()
	if err != nil {
		b.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Kind != kind })
}

func (b *bench) approval(id string) job.Approval {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.home, "approvals", id+".json"))
	if err != nil {
		b.Fatal(err)
	}
	var approval job.Approval
	if err := json.Unmarshal(data, &approval); err != nil {
		b.Fatal(err)
	}
	return approval
}

func (b *bench) exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func (b *bench) touch(path string) {
	b.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) ended(done <-chan error) {
	b.Helper()
	select {
	case err := <-done:
		if err != nil {
			b.Fatalf("Run: %v", err)
		}
	case <-time.After(testkit.Patience):
		b.Fatal("the run did not end")
	}
}

// memory is a broker in memory. It takes results unless it is told not to.
type memory struct {
	mu      sync.Mutex // guards what follows
	hellos  []api.RunnerHello
	reports []api.RunnerReport
	orders  []api.Order
	more    chan struct{}
	keeps   bool  // takes no results
	refuses int   // so many reports of a result, as a conflict
	away    error // nobody is there
}

func newMemory() *memory { return &memory{more: make(chan struct{})} }

func (m *memory) connect(context.Context) (Broker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bridge.CodeOf(m.away) == bridge.Unavailable {
		return nil, m.away
	}
	return &connection{memory: m, given: map[string]bool{}}, nil
}

func (m *memory) changedLocked() {
	close(m.more)
	m.more = make(chan struct{})
}

// give gives an order.
func (m *memory) give(order api.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders = append(m.orders, order)
	m.changedLocked()
}

// order gives an order and returns what became of it.
func (m *memory) order(b *bench, order api.Order) *bridge.Error {
	b.Helper()
	m.give(order)
	var outcome *bridge.Error
	m.until(b, "the outcome of "+order.ID, func(report api.RunnerReport) bool {
		i := slices.IndexFunc(report.Outcomes, func(o api.OrderOutcome) bool { return o.ID == order.ID })
		if i >= 0 {
			outcome = report.Outcomes[i].Error
		}
		return i >= 0
	})
	return outcome
}

// heard is how many reports came.
func (m *memory) heard() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.reports)
}

// until waits for a report that fits, of those that came and those that come.
func (m *memory) until(b *bench, what string, fits func(api.RunnerReport) bool) api.RunnerReport {
	b.Helper()
	limit := time.After(testkit.Patience)
	for seen := 0; ; {
		m.mu.Lock()
		reports, more := m.reports, m.more
		m.mu.Unlock()
		for ; seen < len(reports); seen++ {
			if fits(reports[seen]) {
				return reports[seen]
			}
		}
		select {
		case <-more:
		case <-limit:
			b.Fatalf("no report of %s; the last is %+v", what, reports[max(0, len(reports)-1):])
		}
	}
}

// asked waits for the n-th question.
func (m *memory) asked(b *bench, n int) job.Approval {
	b.Helper()
	var ids []job.Approval
	m.until(b, "a question", func(report api.RunnerReport) bool {
		for _, approval := range report.Approvals {
			if !slices.ContainsFunc(ids, func(a job.Approval) bool { return a.ID == approval.ID }) {
				ids = append(ids, approval)
			}
		}
		return len(ids) >= n
	})
	return ids[n-1]
}

// connection is one connection to memory.
type connection struct {
	*memory
	bound bool
	given map[string]bool
}

func (c *connection) RunnerHello(_ context.Context, hello api.RunnerHello) (api.RunnerReported, error) {
	c.mu.Lock()
	c.hellos = append(c.hellos, hello)
	c.mu.Unlock()
	reported, err := c.hear(hello.Report)
	c.bound = err == nil
	return reported, err
}

func (c *connection) RunnerReport(_ context.Context, report api.RunnerReport) (api.RunnerReported, error) {
	if !c.bound {
		return api.RunnerReported{}, bridge.Errorf(bridge.Denied, "who are you?")
	}
	return c.hear(report)
}

func (c *connection) hear(report api.RunnerReport) (api.RunnerReported, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return api.RunnerReported{}, c.away
	}
	if c.bound && report.Result != nil && c.refuses > 0 {
		c.refuses--
		return api.RunnerReported{}, bridge.Errorf(bridge.Conflict, "not now")
	}
	c.reports = append(c.reports, report)
	for _, outcome := range report.Outcomes {
		c.orders = slices.DeleteFunc(c.orders, func(o api.Order) bool { return o.ID == outcome.ID })
	}
	c.changedLocked()
	return api.RunnerReported{Taken: report.Result != nil && !c.keeps}, nil
}

func (c *connection) RunnerWait(ctx context.Context) (api.RunnerOrders, error) {
	for {
		c.mu.Lock()
		away, more, isNew := c.away, c.more, false
		for _, order := range c.orders {
			isNew = isNew || !c.given[order.ID]
			c.given[order.ID] = true
		}
		orders := slices.Clone(c.orders)
		c.mu.Unlock()
		switch {
		case away != nil:
			return api.RunnerOrders{}, away
		case isNew:
			return api.RunnerOrders{Orders: orders}, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return api.RunnerOrders{}, ctx.Err()
		}
	}
}

// setAway ends every connection; with nil they are let in again.
func (m *memory) setAway(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
	m.changedLocked()
}
