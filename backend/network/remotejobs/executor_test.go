package remotejobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/jobs"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nobody is a broker without sessions.
type nobody struct{ jobs.Broker }

func (nobody) Asker(context.Context, *ipc.Conn, api.Caller) (broker.Asker, error) {
	return broker.Asker{}, bridge.Errorf(bridge.Unavailable, "there are no sessions")
}
func (nobody) JobOf(*ipc.Conn) string { return "" }
func (nobody) Deliver(context.Context, bridge.Address, string, api.SendArgs) error {
	return bridge.Errorf(bridge.Denied, "nothing is to be mailed here")
}
func (nobody) Changed() {}

// desk is the PC that does jobs, and the PC that asks it.
type desk struct {
	t         *testing.T
	jobs      *jobs.Jobs
	root      string
	starts    chan string
	laptop    *pairingtest.End
	self      *pairingtest.End
	responses chan remote.Response

	executor *Executor

	mu     sync.Mutex // guards below
	gone   bool       // laptop is neither paired nor in the team any more
	policy remote.Policy
	broken error
	now    time.Time
}

func newDesk(t *testing.T, join pairingtest.Join) *desk {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	root, err := disk.Canonical(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, root: root, starts: make(chan string, 300), responses: make(chan remote.Response, 2000), now: time.Unix(1_700_000_000, 0)}
	d.policy = remote.Policy{Enabled: true, RemoteJobs: remote.RemoteJobs{
		Enabled: true, AllowRoots: []string{root}, Agents: []bridge.AgentKind{bridge.Codex}, AllowPeers: []string{"laptop"},
	}}
	d.jobs, err = jobs.Open(jobs.Options{
		Home: home, Settings: func() (config.Jobs, error) { return config.Jobs{Enabled: true}, nil }, Broker: nobody{},
		Start: func(folder string) (int, error) {
			d.starts <- folder
			return os.Getpid(), nil
		},
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: jobs.Timing{PollInterval: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.jobs.Run()
	t.Cleanup(d.jobs.Close)
	d.laptop, d.self = join(t, remote.Capability)
	d.executor = NewExecutor(Options{
		Owned: Owned{Jobs: d.jobs, Now: d.clock}, Transport: d.self, Policy: d.allowed, CheckRoot: func(root string) error { return config.ReservedFolders(home, os.Getenv).Check(root) }, Log: slog.New(slog.DiscardHandler),
		Knows: func(pc string) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return pc == d.laptop.Self.ID && !d.gone
		},
	})
	t.Cleanup(d.executor.Close)
	d.self.Serve(Dispatch(d.executor, NewRequester(RequesterOptions{}), slog.New(slog.DiscardHandler)))
	d.laptop.Serve(func(from remote.PC, frame remote.Frame) {
		_, response, err := remote.Parse(frame.Payload, remote.Peer{ID: from.ID, Name: from.Name})
		if err != nil || response == nil {
			t.Errorf("the answer %s: %v", frame.Payload, err)
			return
		}
		d.responses <- *response
	})
	return d
}

func (d *desk) allowed() (remote.Policy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.policy, d.broken
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// set changes what the owner of the desk says, or the time there.
func (d *desk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// send sends a request as it is written.
func (d *desk) send(supervisor, request string) string {
	d.t.Helper()
	rid := uuid.NewString()
	payload := fmt.Sprintf(`{"kind":"request","rid":%q,"peer":{"id":"forged","name":"owner","supervisor":%q},"request":%s}`, rid, supervisor, request)
	if err := d.laptop.Send(d.t.Context(), d.self.Self.ID, remote.Frame{Type: remote.FrameType, Payload: json.RawMessage(payload)}); err != nil {
		d.t.Fatal(err)
	}
	return rid
}

// ask sends a request and waits for its answer.
func (d *desk) ask(request string) (remote.Value, error) { return d.askAs("s-1", request) }

func (d *desk) askAs(supervisor, request string) (remote.Value, error) {
	d.t.Helper()
	rid := d.send(supervisor, request)
	select {
	case response := <-d.responses:
		if response.Rid != rid {
			d.t.Fatalf("the answer is to %s, not to %s", response.Rid, rid)
		}
		return response.Value, response.Err
	case <-time.After(testkit.Patience):
		d.t.Fatal("no answer")
		return remote.Value{}, nil
	}
}

const first = "codex-job-00000001"

// spawn is the request for a job.
func (d *desk) spawn(name, cwd string) string {
	return fmt.Sprintf(`{"op":"spawn","job":%q,"target":"codex","args":{"prompt":"Do it.","cwd":%q,"access":"edit"}}`, name, cwd)
}

// overEach runs a test over each transport.
func overEach(t *testing.T, test func(*testing.T, *desk)) {
	t.Helper()
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) { test(t, newDesk(t, join)) })
	}
}

func wantCode(t *testing.T, what string, err error, code bridge.Code) {
	t.Helper()
	if bridge.CodeOf(err) != code {
		t.Errorf("%s: %v, want code %q", what, err, code)
	}
}

func TestRMT_05_AJobIsStartedLookedAtAndCancelled(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		value, err := d.ask(d.spawn(first, d.root))
		if err != nil || !value.Alive || value.State.Job != first || value.State.Workdir != d.root || value.State.Access != "edit" {
			t.Fatalf("the answer is %+v, %v", value.State, err)
		}
		<-d.starts
		// RMT-02: who asked is who the link proved, whatever the request says.
		entry, err := (Owned{Jobs: d.jobs}).Job(first, remote.Peer{ID: d.laptop.Self.ID, Supervisor: "s-1"})
		if err != nil || entry.PC != d.laptop.Self.ID || entry.Owner != "laptop/s-1" {
			t.Errorf("it belongs to %q of %q, %v", entry.Owner, entry.PC, err)
		}
		if _, err := d.ask(d.spawn(first, d.root)); err != nil || len(d.starts) != 0 { // RMT-13
			t.Errorf("asked again: %v, %d starts", err, len(d.starts))
		}
		_, err = d.askAs("s-2", d.spawn(first, d.root))
		wantCode(t, "another session asks for it", err, bridge.Conflict)
		for _, request := range []string{`{"op":"state","job":"` + first + `"}`, `{"op":"control","job":"` + first + `","cancel":true}`} {
			_, err := d.askAs("s-2", request)
			wantCode(t, "another session: "+request, err, bridge.NotFound)
		}
		words := `{"op":"control","job":"` + first + `","id":"m-1","control":{"job":"` + first + `","message":"Faster."}}`
		for range 3 {
			if _, err := d.ask(words); err != nil {
				t.Error(err)
			}
		}
		if _, err := d.ask(`{"op":"control","job":"` + first + `","cancel":true}`); err != nil {
			t.Error(err)
		}
		entry, _ = (Owned{Jobs: d.jobs}).Job(first, remote.Peer{ID: d.laptop.Self.ID, Supervisor: "s-1"})
		if !entry.CancelAsked {
			t.Error("it was not cancelled")
		}
	})
}

// TestHUB_03_TheJobsOfAPCThatIsGoneEnd: also those that wait in line, and one that was
// taken in while its PC went; this PC's own go on.
func TestHUB_03_TheJobsOfAPCThatIsGoneEnd(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		if _, err := d.ask(d.spawn(first, d.root)); err != nil {
			t.Fatal(err)
		}
		request := job.Request{Kind: bridge.Codex, Prompt: "Mine.", Cwd: d.root, Access: job.AccessEdit}
		if _, err := d.jobs.Take(t.Context(), request, "codex-job-00000009", job.Caller{Name: "boss", ID: "b-1"}, ""); err != nil {
			t.Fatal(err)
		}
		asked := func(name string) bool {
			entry, err := d.jobs.Find(name)
			return err == nil && (entry.CancelAsked || entry.State == job.Cancelled)
		}
		d.executor.Notify()
		if _, err := d.ask(`{"op":"state","job":"` + first + `"}`); err != nil || asked(first) {
			t.Errorf("the job of a PC that is known: %v, ended %t", err, asked(first))
		}
		d.set(func() { d.gone = true })
		d.executor.Notify()
		ends := func(name string) {
			t.Helper()
			again, late := time.NewTicker(5*time.Millisecond), time.After(testkit.Patience)
			defer again.Stop()
			for !asked(name) {
				select {
				case <-again.C:
				case <-late:
					t.Fatalf("%s goes on", name)
				}
			}
		}
		ends(first)
		const second = "codex-job-00000002"
		if _, err := d.ask(d.spawn(second, d.root)); err != nil { // the transport had brought it before
			t.Fatal(err)
		}
		ends(second)
		if asked("codex-job-00000009") {
			t.Error("this PC's own job was ended")
		}
	})
}

// TestSEC_09_AReservedRootAllowsNothing: what config.json allows by hand is looked at on
// each request, also by where its links lead.
func TestSEC_09_AReservedRootAllowsNothing(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		user := filepath.Join(d.root, "anna")
		project, keys, link := filepath.Join(user, "src"), filepath.Join(user, ".ssh"), filepath.Join(d.root, "link")
		if err := errors.Join(os.MkdirAll(project, 0o700), os.MkdirAll(keys, 0o700), os.Symlink(keys, link)); err != nil {
			t.Skip("no links on this system:", err)
		}
		t.Setenv("HOME", user)
		t.Setenv("USERPROFILE", user)
		for root, folder := range map[string]string{user: project, d.root: project, keys: keys, link: keys, "/": project} {
			d.set(func() { d.policy.RemoteJobs.AllowRoots = []string{root} })
			if _, err := d.ask(d.spawn(first, folder)); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "allowRoots") {
				t.Errorf("below %s: %v, want Denied", root, err)
			}
		}
		d.set(func() { d.policy.RemoteJobs.AllowRoots = []string{user, project} })
		if _, err := d.ask(d.spawn(first, project)); err != nil {
			t.Errorf("below a project: %v", err)
		}
	})
}

func TestRMT_06_EachDefaultDeniesAndIsReadOnEveryRequest(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		granted := d.policy
		for rule, change := range map[string]func(){
			"network.enabled":               func() { d.policy.Enabled = false },
			"network.remoteJobs.enabled":    func() { d.policy.RemoteJobs.Enabled = false },
			"network.remoteJobs.allowPeers": func() { d.policy.RemoteJobs.AllowPeers = nil },
			"network.remoteJobs.agents":     func() { d.policy.RemoteJobs.Agents = nil },
			"network.remoteJobs.allowRoots": func() { d.policy.RemoteJobs.AllowRoots = nil },
		} {
			d.set(change)
			if _, err := d.ask(d.spawn(first, d.root)); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "("+rule+")") {
				t.Errorf("without %s: %v", rule, err)
			}
			d.set(func() { d.policy = granted })
		}
		d.set(func() { d.broken = os.ErrInvalid })
		_, err := d.ask(d.spawn(first, d.root))
		wantCode(t, "settings that cannot be read", err, bridge.Denied)
		d.set(func() { d.broken = nil })
		if len(d.jobs.Views()) != 0 {
			t.Errorf("%d jobs were taken in", len(d.jobs.Views()))
		}
		if _, err := d.ask(d.spawn(first, d.root)); err != nil {
			t.Fatalf("what is allowed: %v", err)
		}
		words := `{"op":"control","job":"` + first + `","id":"m-1","control":{"job":"` + first + `","message":"Faster."}}`
		d.set(func() { d.policy.RemoteJobs.AllowRoots = []string{filepath.Join(d.root, "other")} })
		_, err = d.ask(words)
		wantCode(t, "words when its folder is not allowed any more", err, bridge.Denied)
		d.set(func() { d.policy = granted; d.policy.RemoteJobs.AllowPeers = nil })
		for _, request := range []string{words, `{"op":"state","job":"` + first + `"}`, `{"op":"control","job":"` + first + `","cancel":true}`, `{"op":"approval","job":"` + first + `","id":"q","decision":"allow"}`} {
			_, err := d.ask(request)
			wantCode(t, "when its PC is not allowed any more: "+request, err, bridge.Denied)
		}
	})
}

func TestRMT_07_WhatARequesterCannotBring(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		for _, extra := range []string{`"send_to":["api"]`, `"host":"third"`, `"bin":"/bin/sh"`, `"env":{"A":"b"}`, `"set_up":["sh"]`, `"agent":"x"`, `"session_id":"somebody's"`} {
			_, err := d.ask(fmt.Sprintf(`{"op":"spawn","job":%q,"target":"codex","args":{"prompt":"p","cwd":%q,%s}}`, first, d.root, extra))
			if code := bridge.CodeOf(err); code != bridge.Invalid && code != bridge.Denied {
				t.Errorf("%s: %v", extra, err)
			}
		}
		if len(d.jobs.Views()) != 0 {
			t.Errorf("%d jobs were taken in", len(d.jobs.Views()))
		}
	})
}

func TestRMT_14_TenJobsAndSixHundredRequestsAMinute(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		for i := range 10 {
			if _, err := d.ask(d.spawn(job.Name(bridge.Codex, false, [4]byte{0, 0, 0, byte(i)}), "/etc")); bridge.CodeOf(err) != bridge.Denied {
				t.Fatalf("job %d: %v", i+1, err)
			}
		}
		_, err := d.ask(d.spawn(first, d.root))
		wantCode(t, "the eleventh attempt", err, bridge.Busy)
		state := `{"op":"state","job":"` + first + `"}`
		for range 590 {
			_, err := d.ask(state)
			wantCode(t, "a question", err, bridge.NotFound)
		}
		_, err = d.ask(state)
		wantCode(t, "request 601", err, bridge.Busy)
		d.set(func() { d.now = d.now.Add(time.Minute) })
		if _, err := d.ask(d.spawn(first, d.root)); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

func TestRMT_04_AHostilePeersFrames(t *testing.T) {
	overEach(t, func(t *testing.T, d *desk) {
		for _, payload := range []string{
			`{}`, `[]`, `null`, `{"kind":"request"}`, `{"kind":"response","rid":"` + uuid.NewString() + `","value":{}}`,
			`{"kind":"request","rid":"x","peer":{"supervisor":"s"},"request":{"op":"state","job":"` + first + `"}}`,
			`{"kind":"request","rid":"` + uuid.NewString() + `","request":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		} {
			if err := d.laptop.Send(t.Context(), d.self.Self.ID, remote.Frame{Type: remote.FrameType, Payload: json.RawMessage(payload)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2000 { // more than it works on at once, without waiting
			d.send("s-1", d.spawn(first, "/etc"))
		}
		d.set(func() { d.now = d.now.Add(time.Hour) })
		d.send("s-1", `{"op":"state","job":"`+first+`"}`)
		for bridge.CodeOf((<-d.responses).Err) != bridge.NotFound {
			d.send("s-1", `{"op":"state","job":"`+first+`"}`) // the one before may have been one too many
		}
		if len(d.jobs.Views()) != 0 {
			t.Errorf("%d jobs were taken in", len(d.jobs.Views()))
		}
	})
}

// slow is a PC whose jobs answer when they are told to.
type slow struct {
	Jobs
	began chan struct{}
	free  chan struct{}
}

func (s slow) Find(string) (job.Job, error) {
	s.began <- struct{}{}
	<-s.free
	return job.Job{}, nil
}

func TestRMT_14_SoManyAtOnceAndNoMore(t *testing.T) {
	laptop, self := pairingtest.InMemory(t, remote.Capability)
	s := slow{began: make(chan struct{}, 100), free: make(chan struct{})}
	policy := remote.Policy{Enabled: true, RemoteJobs: remote.RemoteJobs{Enabled: true, AllowPeers: []string{"laptop"}}}
	executor := NewExecutor(Options{
		Owned: Owned{Jobs: s, Now: time.Now}, Transport: self, Policy: func() (remote.Policy, error) { return policy, nil }, Log: slog.New(slog.DiscardHandler),
	})
	for range 100 {
		payload := fmt.Sprintf(`{"kind":"request","rid":%q,"peer":{"supervisor":"s"},"request":{"op":"state","job":%q}}`, uuid.NewString(), first)
		Dispatch(executor, nil, slog.New(slog.DiscardHandler))(laptop.Self, remote.Frame{Type: remote.FrameType, Payload: json.RawMessage(payload)})
	}
	for range maxAtOnce {
		<-s.began
	}
	if len(s.began) != 0 {
		t.Errorf("%d more are worked on", len(s.began))
	}
	close(s.free)
	executor.Close()
}
