package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/runner"
	"bridge/backend/platform/config"
	"bridge/backend/platform/sandbox"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// rounds is how often a test disturbs two PCs.
func rounds(t *testing.T, short int) int { return testkit.Rounds(t, short, 500) }

// guest is a session on one of the PCs, and what it was shown.
type guest struct {
	*pc
	server *server

	mu    sync.Mutex
	shown map[string]int    // how often, by the message's id
	body  map[string]string // by id
	sent  []string          // ids that were accepted
}

func (p *pc) guest(name string) *guest {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	s, err := serveLines(ctx, p.command("mcp", "--agent", "claude", "--name", name, "--session", "host-"+name, "--cwd", p.dir), p.start)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(s.kill)
	return &guest{pc: p, server: s, shown: map[string]int{}, body: map[string]string{}}
}

// collect takes the session's mail.
func (g *guest) collect() {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	var box struct{ Messages []shown }
	if g.server.call(ctx, "inbox", map[string]any{"limit": 100}, &box) != nil {
		return // its broker is being replaced
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range box.Messages {
		g.shown[m.ID]++
		g.body[m.ID] = m.Body
	}
}

func (g *guest) has(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shown[id] > 0
}

// trouble is what happens in one round.
type trouble struct {
	name string
	what func(s *strife, e *errand)
	// endsBrokerOfTwo says that another broker serves the second PC afterwards.
	endsBrokerOfTwo bool
}

// strife is two PCs that work for each other while everything goes wrong.
type strife struct {
	*twoPCs
	boss, peer *guest
	troubles   []trouble
	left       atomic.Int64

	turn sync.Mutex // one trouble at a time

	tally   sync.Mutex
	done    map[string]int // troubles, by name and moment
	missed  map[string]int // steps that a run did not come to
	errands []*errand
	unclear int // calls of which nobody knew what became of them
	refused int // calls that were refused at once, since there was no link
	slowest time.Duration
}

func hold(most time.Duration) { <-time.After(rand.N(most)) }

var troubles = []trouble{
	{name: "reset", what: func(s *strife, _ *errand) { s.reset() }},
	{name: "cut", what: func(s *strife, _ *errand) {
		s.cut.Store(true)
		hold(3 * time.Second)
		s.cut.Store(false)
	}},
	{name: "cut and reset", what: func(s *strife, _ *errand) {
		s.cut.Store(true)
		s.reset()
		hold(2 * time.Second)
		s.cut.Store(false)
	}},
	{name: "device of one", what: func(s *strife, _ *errand) { s.bounce(0) }},
	{name: "device of two", what: func(s *strife, _ *errand) { s.bounce(1) }},
	{name: "broker of one", what: func(s *strife, _ *errand) { s.pcs[0].killBroker() }},
	{name: "broker of two", what: func(s *strife, _ *errand) { s.pcs[1].killBroker() }, endsBrokerOfTwo: true},
	{name: "both brokers", what: func(s *strife, _ *errand) {
		var both sync.WaitGroup
		both.Go(s.pcs[0].killBroker)
		both.Go(s.pcs[1].killBroker)
		both.Wait()
	}, endsBrokerOfTwo: true},
	{name: "runner", what: func(s *strife, e *errand) { e.killRunner() }},
	{name: "runner and broker of two", what: func(s *strife, e *errand) { e.killRunner(); s.pcs[1].killBroker() }, endsBrokerOfTwo: true},
}

func (s *strife) bounce(end int) {
	s.pull(end, true)
	hold(2 * time.Second)
	s.pull(end, false)
}

// disturb is one round.
func (s *strife) disturb(e *errand, when string) bool {
	if s.left.Add(-1) < 0 {
		return false
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	failure := oneOf(s.troubles)
	failure.what(s, e)
	s.tally.Lock()
	defer s.tally.Unlock()
	s.done[failure.name+" "+when]++
	return true
}

// errand is one job that the first PC has the second one do, with its runs.
type errand struct {
	*strife
	id     string
	name   string // on both
	words  int
	tokens []string
	doubts map[string]bool // tokens that may rightly be done twice: nobody knew whether they were heard, or their run was interrupted
}

func (e *errand) folder() string { return filepath.Join(e.pcs[1].home.Dir(), "jobs", e.name) }
func (e *errand) ledger() string {
	return written(e.pcs[1].home.Dir(), e.pcs[1].config, "ledger-"+e.id)
}

func (e *errand) spec() (spec runs.SpecFile) {
	if data, err := os.ReadFile(filepath.Join(e.folder(), "spec.json")); err == nil {
		spec, _ = runs.DecodeSpec(data, e.name)
	}
	return spec
}

func (e *errand) killRunner() {
	for _, pid := range e.pcs[1].processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && e.name != "" && strings.Contains(string(line), "run-job\x00"+e.folder()+"\x00") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// release lets whatever waits at a step go on.
func (e *errand) release() {
	at, _ := filepath.Glob(filepath.Join(e.folder(), "at-*"))
	for _, path := range at {
		touch(filepath.Join(e.folder(), "go"+strings.TrimPrefix(filepath.Base(path), "at")))
	}
}

var strifeSteps = []runner.Step{
	runner.StepClaimed, runner.StepPrompted, runner.StepStarted, runner.StepSpawned, runner.StepEnded, runner.StepReaped, runner.StepConcluded, runner.StepDelivered,
}

// run is one run: its words go out, something happens at some moment, and what came of
// it is told.
func (e *errand) run(disturbed bool) error {
	e.words++
	token := fmt.Sprintf("%s.%d", e.id, e.words)
	e.tokens = append(e.tokens, token)
	lines := []string{fmt.Sprintf("do echo %s >> %s", token, ownConfig("ledger-"+e.id)), "do sleep 0." + strconv.Itoa(rand.IntN(6)), "say done " + token}
	var step runner.Step
	moment := rand.IntN(4)
	if disturbed && moment >= 2 {
		step = oneOf(strifeSteps)
		lines = append(lines, "at "+string(step))
	}
	var happens sync.WaitGroup
	if disturbed && moment == 0 {
		happens.Go(func() {
			hold(300 * time.Millisecond)
			e.disturb(e, "while it is asked for")
		})
	}
	err := e.begin(token, strings.Join(lines, "\n"))
	happens.Wait()
	if err != nil {
		return err
	}
	switch {
	case step != "":
		reached := func() bool {
			found, _ := filepath.Glob(filepath.Join(e.folder(), "at-*-"+string(step)))
			return slices.ContainsFunc(found, func(at string) bool {
				return !there(filepath.Join(e.folder(), "go"+strings.TrimPrefix(filepath.Base(at), "at")))
			})
		}
		if within(15*time.Second, func() bool { return reached() || e.told(token) > 0 }) && reached() {
			e.disturb(e, "at "+string(step))
		} else {
			e.tally.Lock()
			e.missed[string(step)]++
			e.tally.Unlock()
		}
	case disturbed && moment == 1:
		hold(700 * time.Millisecond)
		e.disturb(e, "at any moment")
	}
	return e.settled(token)
}

// begin has the words reach the job, as its first or its next run. What was refused is
// asked for again; what is not clear is looked at first.
func (e *errand) begin(token, prompt string) error {
	deadline := time.Now().Add(3 * settle)
	for {
		var answer struct{ Job, Doubt string }
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		began := time.Now()
		var err error
		if e.name == "" {
			err = e.boss.server.call(ctx, "spawn_claude", map[string]any{
				"prompt": prompt, "title": e.id, "host": "two", "cwd": filepath.Join(e.pcs[1].dir, "work"), "access": "edit",
			}, &answer)
		} else {
			err = e.boss.server.call(ctx, "message_subagent", map[string]any{"job": e.name, "message": prompt}, &answer)
		}
		cancel()
		if err == nil {
			e.name = cmp.Or(e.name, answer.Job)
			return nil // with a doubt or without: it is known here, and comes to an end
		}
		e.note(err, time.Since(began))
		if e.name == "" { // it may have been taken all the same
			if found := e.pcs[0].jobs(func(entry job.Job) bool { return entry.Title == e.id && entry.Ended != job.EndedNotStarted }); len(found) == 1 {
				e.name = found[0].Name
				return nil
			}
		} else if !isRefusal(err) {
			e.doubts[token] = true
			if within(25*time.Second, func() bool { e.release(); return e.heard(token) }) {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s cannot be asked: %w", token, err)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// isRefusal reports whether nothing was done for certain.
func isRefusal(err error) bool {
	return strings.Contains(err.Error(), "there is no link to") || strings.Contains(err.Error(), "a paired PC may ask for") || strings.Contains(err.Error(), "its result is on its way")
}

func (s *strife) note(err error, took time.Duration) {
	s.tally.Lock()
	defer s.tally.Unlock()
	if isRefusal(err) {
		s.refused++
		s.slowest = max(s.slowest, took)
	} else {
		s.unclear++
		s.Logf("not clear after %s: %v", took.Round(time.Millisecond), err)
	}
}

// heard reports whether the second PC has these words.
func (e *errand) heard(token string) bool {
	said := e.spec().Prompt + read(filepath.Join(e.folder(), "orders.json")) + e.ledger()
	for _, entry := range e.pcs[1].jobs(func(entry job.Job) bool { return entry.Name == e.name }) {
		said += strings.Join(entry.QueuedMessages, "\n") + entry.Prompt
	}
	return strings.Contains(said, token)
}

// told is the run whose result has come and that had these words, or that was the job's
// last one; 0 is none.
func (e *errand) told(token string) int {
	e.boss.collect()
	found := e.pcs[0].jobs(func(entry job.Job) bool { return entry.Name == e.name })
	if len(found) != 1 || !found[0].State.IsEnded() || !found[0].ResultSent || !e.boss.has(runs.ResultID(e.name, found[0].Run)) {
		return 0
	}
	theirs := e.pcs[1].jobs(func(entry job.Job) bool { return entry.Name == e.name })
	if len(theirs) == 1 && (!theirs[0].State.IsEnded() || theirs[0].Run != found[0].Run) {
		return 0 // it goes on there
	}
	if len(theirs) == 1 && !e.heard(token) {
		return 0 // the words are on their way
	}
	return found[0].Run
}

// settled waits until what came of the words is told.
func (e *errand) settled(token string) error {
	if !within(4*settle, func() bool { e.release(); return e.told(token) > 0 }) {
		ours := e.pcs[0].jobs(func(entry job.Job) bool { return entry.Name == e.name })
		theirs := e.pcs[1].jobs(func(entry job.Job) bool { return entry.Name == e.name })
		return fmt.Errorf("what came of %s is never told: here %s, there %s; the link is %+v", token, brief(ours), brief(theirs), e.pcs[0].peer())
	}
	run := e.told(token)
	e.boss.mu.Lock()
	body := e.boss.body[runs.ResultID(e.name, run)]
	e.boss.mu.Unlock()
	if !strings.Contains(body, "done "+token) {
		for _, said := range e.tokens {
			e.doubts[said] = true // its run came to nothing: all that it had may be asked for again
		}
	}
	return nil
}

func brief(jobs []job.Job) (text string) {
	for _, entry := range jobs {
		text += fmt.Sprintf("[%s is %s (%s) at run %d, result sent: %t, waiting: %d]", entry.Name, entry.State, entry.Ended, entry.Run, entry.ResultSent, len(entry.QueuedMessages))
	}
	return text
}

// wasStarted reports whether the second PC has the job. Else its end was told as one of a
// job that was not started.
func (e *errand) wasStarted() bool {
	return len(e.pcs[1].jobs(func(entry job.Job) bool { return entry.Name == e.name })) > 0
}

// live is one job with its runs. One that was not started goes on as another.
func (s *strife) live(id string) error {
	e := &errand{strife: s, id: id, doubts: map[string]bool{}}
	s.tally.Lock()
	s.errands = append(s.errands, e)
	s.tally.Unlock()
	for range 5 {
		if s.left.Load() <= 0 {
			break
		}
		if err := e.run(true); err != nil {
			return err
		}
		if !e.wasStarted() {
			return nil
		}
	}
	return e.run(false)
}

// chats has a session send to one on the other PC, until ctx ends.
func (g *guest) chats(ctx context.Context, to string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("word-from-%s-%d", g.name, i)
		for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
			call, cancel := context.WithTimeout(context.Background(), settle)
			var sent struct{ ID string }
			err := g.server.call(call, "send", map[string]any{"to": to, "message": "word [" + id + "]", "message_id": id}, &sent)
			cancel()
			if err == nil {
				g.mu.Lock()
				g.sent = append(g.sent, id)
				g.mu.Unlock()
				break
			}
			if time.Since(began) > 2*settle || errors.Is(err, errEnded) {
				g.Errorf("%s never takes %s: %v", g.name, id, err)
				return
			}
		}
		select {
		case <-time.After(rand.N(400 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

// weathers changes how good the wire is, until ctx ends.
func (s *strife) weathers(ctx context.Context) {
	for bad := false; ctx.Err() == nil; bad = !bad {
		if bad {
			s.weather(200*time.Millisecond, 50)
		} else {
			s.weather(0, 0)
		}
		select {
		case <-time.After(8 * time.Second):
		case <-ctx.Done():
		}
	}
	s.weather(0, 0)
}

func newStrife(t *testing.T) *strife {
	t.Helper()
	waitAtSteps(t)
	s := &strife{twoPCs: newTwoPCs(t), troubles: troubles, done: map[string]int{}, missed: map[string]int{}}
	s.pair()
	work := filepath.Join(s.pcs[1].dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	s.pcs[0].allow(config.Network{Enabled: true, Messages: config.Sharing{AllowPeers: []string{"two"}}})
	s.pcs[1].allow(config.Network{
		Enabled: true, Messages: config.Sharing{AllowPeers: []string{"one"}},
		RemoteJobs: remote.RemoteJobs{Enabled: true, AllowRoots: []string{work}, Agents: []bridge.AgentKind{bridge.Claude}, AllowPeers: []string{"one"}},
	})
	s.boss, s.peer = s.pcs[0].guest("boss"), s.pcs[1].guest("peer")
	return s
}

// TestRMT_13_RMT_15_RMT_21_JobsAndMessagesCrossWhateverHappens: one PC has jobs done by
// the other and their sessions write to each other, while the wire is slow, loses
// packets, is cut, and brokers and runners die at named steps and at any moment. At the
// end no job was begun twice, and no result and no message is lost or came twice.
func TestRMT_13_RMT_15_RMT_21_JobsAndMessagesCrossWhateverHappens(t *testing.T) {
	s := newStrife(t)
	n := rounds(t, 3)
	s.left.Store(int64(n))
	ctx, cancel := context.WithCancel(context.Background())
	var beside, lanes sync.WaitGroup
	beside.Go(func() { s.weathers(ctx) })
	if slices.Contains(s.pcs[0].peer().Capabilities, "messages-v1") {
		beside.Go(func() { s.boss.chats(ctx, "two/peer") })
		beside.Go(func() { s.peer.chats(ctx, "one/boss") })
	}
	began := time.Now()
	for lane := range 4 {
		lanes.Go(func() {
			for i := 0; s.left.Load() > 0 && !t.Failed(); i++ {
				if err := s.live(fmt.Sprintf("errand-%d-%d", lane, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	lanes.Wait()
	cancel()
	beside.Wait()
	s.count(time.Since(began))
}

// count is what is found at the end.
func (s *strife) count(took time.Duration) {
	s.Helper()
	ran, results, jobs := 0, 0, 0
	for _, e := range s.errands {
		for _, entry := range s.pcs[0].jobs(func(entry job.Job) bool { return entry.Name == e.name }) {
			jobs++
			for run := 1; run <= entry.Run; run++ {
				ran++
				id := runs.ResultID(entry.Name, run)
				if !within(settle, func() bool { s.boss.collect(); return s.boss.has(id) }) {
					s.Errorf("the result of run %d of %s is lost", run, entry.Name)
					continue
				}
				results++
			}
		}
		e.wordsOnce()
	}
	for _, way := range [][2]*guest{{s.boss, s.peer}, {s.peer, s.boss}} {
		for _, id := range way[0].sent {
			if !within(settle, func() bool { way[1].collect(); return way[1].has(id) }) {
				s.Errorf("%s is lost", id)
			}
		}
	}
	for _, g := range []*guest{s.boss, s.peer} {
		g.collect()
		g.collect() // what the first has shown counts as read
		for id, n := range g.shown {
			if n != 1 {
				s.Errorf("%s was shown %s %d times", id, g.name, n)
			}
		}
		g.storedOnce(slices.Collect(maps.Keys(g.shown)))
	}
	starts := s.startsOnce()
	rounds := 0
	for _, k := range s.done {
		rounds += k
	}
	s.Logf("%d rounds in %s: %d jobs, %d runs told, %d results, %d starts of an agent; %d messages there, %d back; %d calls refused for want of a link (the slowest after %s), %d unclear; %d packets carried, %d lost; steps not reached: %v",
		rounds, took.Round(time.Second), jobs, ran, results, starts, len(s.boss.sent), len(s.peer.sent), s.refused, s.slowest.Round(time.Millisecond), s.unclear, s.carried.Load(), s.lost.Load(), s.missed)
	var kinds []string
	for what, k := range s.done {
		kinds = append(kinds, fmt.Sprintf("%s: %d", what, k))
	}
	slices.Sort(kinds)
	s.Logf("rounds: %s", strings.Join(kinds, "; "))
	testkit.Within(s, 5*time.Second, s.slowest, "without a link a command was refused")
	if rounds == 0 || results == 0 {
		s.Error("nothing happened")
	}
	for _, p := range s.pcs {
		for _, e := range s.errands {
			if e.name == "" {
				continue
			}
			if !within(settle, func() bool { return len(ofJob(e.name, "")) == 0 }) {
				p.Errorf("of %s the processes %v are left", e.name, ofJob(e.name, ""))
			}
		}
	}
}

// startsOnce wants each run begun once: an agent's start carries its run's own mark.
func (s *strife) startsOnce() (starts int) {
	s.Helper()
	begun := map[string]int{}
	for line := range strings.Lines(written(s.pcs[1].home.Dir(), s.pcs[1].config, "starts")) {
		starts++
		if begun[line]++; begun[line] > 1 {
			s.Errorf("a run was begun twice (%s, %s): %s", sandbox.JobVariable, sandbox.TokenVariable, line)
		}
	}
	if here := written(s.pcs[0].home.Dir(), s.pcs[0].config, "starts"); here != "" {
		s.Errorf("the first PC has begun %s", here)
	}
	return starts
}

// wordsOnce wants what the job was told done once, as far as it was clear.
func (e *errand) wordsOnce() {
	e.Helper()
	done := strings.Fields(e.ledger())
	for i, token := range done {
		if slices.Contains(done[:i], token) && !e.doubts[token] {
			e.Errorf("%s did %s twice", e.name, token)
		}
	}
}

// storedOnce wants each message once in the PC's store.
func (g *guest) storedOnce(ids []string) {
	g.Helper()
	reader, err := store.OpenReader(context.Background(), g.home.DB())
	if err != nil {
		g.Fatal(err)
	}
	defer reader.Close()
	for _, id := range ids {
		if row, err := reader.Find(context.Background(), id); err != nil || len(row.Deliveries) != 1 {
			g.Errorf("%s is stored %d times: %v", id, len(row.Deliveries), err)
		}
	}
}

// TestRMT_15_WithoutALinkCommandsFailAtOnce: and nothing of them is done later.
func TestRMT_15_WithoutALinkCommandsFailAtOnce(t *testing.T) {
	s := newStrife(t)
	e := &errand{strife: s, id: "before", doubts: map[string]bool{}}
	gate := filepath.Join(s.pcs[1].dir, "gate")
	if err := e.begin("before", "wait "+gate+"\nsay done before"); err != nil {
		t.Fatal(err)
	}
	s.pcs[0].await("the job runs there", settle, func() bool {
		return len(s.pcs[1].jobs(func(entry job.Job) bool { return entry.Name == e.name && entry.State == job.Running })) == 1
	})
	s.cut.Store(true)
	s.reset()
	s.cutOff()
	call := func(tool string, args map[string]any) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		began := time.Now()
		err := s.boss.server.call(ctx, tool, args, &struct{}{})
		testkit.Within(t, 3*time.Second, time.Since(began), tool+": refused")
		if err == nil || !strings.Contains(err.Error(), "no link to two") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	call("spawn_claude", map[string]any{"prompt": "say no", "title": "without", "host": "two", "cwd": filepath.Join(s.pcs[1].dir, "work"), "access": "edit"})
	call("message_subagent", map[string]any{"job": e.name, "message": "say no"})
	call("cancel_subagent", map[string]any{"job": e.name})
	if found := s.pcs[0].jobs(func(entry job.Job) bool { return entry.Title == "without" }); len(found) != 0 {
		t.Errorf("there is %+v", found)
	}
	s.cut.Store(false)
	s.linked()
	touch(gate)
	if err := e.settled("before"); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.pcs {
		if found := p.jobs(func(job.Job) bool { return true }); len(found) != 1 || found[0].Run != 1 || found[0].State != job.Finished {
			t.Errorf("%s has %+v", p.name, found)
		}
	}
	if starts := s.startsOnce(); starts != 1 {
		t.Errorf("%d runs were begun", starts)
	}
}

// TestRMT_15_AJobIsNotHeardOf waits until what is known of a job is 90 seconds old.
func TestRMT_15_AJobIsNotHeardOf(t *testing.T) {
	testkit.Long(t, "it waits for 90 seconds")
	s := newStrife(t)
	e := &errand{strife: s, id: "silent", doubts: map[string]bool{}}
	gate := filepath.Join(s.pcs[1].dir, "gate")
	if err := e.begin("silent", "wait "+gate+"\nsay done silent"); err != nil {
		t.Fatal(err)
	}
	doubt := func() string {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		var peers struct {
			Jobs []struct{ Job, Status, Doubt string }
		}
		if err := s.boss.server.call(ctx, "peers", map[string]any{}, &peers); err != nil || len(peers.Jobs) != 1 {
			t.Fatalf("peers: %+v, %v", peers, err)
		}
		return peers.Jobs[0].Doubt
	}
	s.pcs[0].await("the job is heard of", settle, func() bool {
		return len(s.pcs[0].jobs(func(entry job.Job) bool { return entry.State == job.Running })) == 1 && doubt() == ""
	})
	s.cut.Store(true)
	began := time.Now()
	s.pcs[0].await("it is said that it is not heard of", 2*settle, func() bool { return strings.HasPrefix(doubt(), "not heard of since ") })
	took := time.Since(began)
	if testkit.Within(t, 100*time.Second, took, "that is said"); took < 80*time.Second {
		t.Errorf("that is said after %s, want 90 s", took)
	}
	s.cut.Store(false)
	s.pcs[0].await("it is heard of again", 2*settle, func() bool { return doubt() == "" })
	touch(gate)
	if err := e.settled("silent"); err != nil {
		t.Fatal(err)
	}
}
