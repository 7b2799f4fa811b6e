package simulation

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"bridge/backend/agent"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/network/sharing"
	"bridge/backend/platform/config"
	realdisk "bridge/backend/platform/disk"
	"bridge/backend/storage/store"
)

// pc is one PC. What is below running ends with a crash.
type pc struct {
	t      testing.TB
	number int
	name   string
	id     string
	home   config.Home
	root   string // the folder in which its owner allows jobs
	disk   *disk
	world  *world

	mu     sync.Mutex // guards below
	run    *running   // nil while it is off
	dead   bool       // it has crashed, and is not off yet
	frames int        // it crashes at the n-th frame that it sends; negative for never
	after  bool       // that frame still leaves
	clock  time.Duration
	shares map[remote.Share]map[string]bool
	past   []allowance // of before, oldest first
	slow   time.Time   // its settings cannot be read before

	crashed chan struct{} // capacity 1
	updates chan struct{} // capacity 1; its Bridge is to be restarted
	runners runners
}

// running is a Bridge that runs on a PC.
type running struct {
	db      *store.DB
	broker  *broker.Broker
	sharing *sharing.Sharing
	jobs    *simulatedJobs // nil in a world without jobs
}

func newPC(w *world, number int, template []byte) *pc {
	name := []string{"north", "south", "east", "west", "middle"}[number]
	home, err := config.ResolveHome(filepath.Join(w.t.TempDir(), name), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	var root string
	if err == nil {
		root, err = realdisk.Canonical(w.t.TempDir())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p := &pc{
		t: w.t, number: number, name: name, id: "id-of-" + name, home: home, root: root, disk: newDisk(home.Dir()), world: w,
		frames: -1, shares: map[remote.Share]map[string]bool{}, crashed: make(chan struct{}, 1), updates: make(chan struct{}, 1),
		runners: runners{end: make(chan struct{})},
	}
	p.disk.put(w.t, filepath.Base(home.DB()), template)
	return p
}

// now is the PC's clock. Its wall clock is off; the monotonic part of the time, by which
// spans are measured, is not.
func (p *pc) now() time.Time {
	p.mu.Lock()
	off := p.clock
	p.mu.Unlock()
	return shift(time.Now(), off)
}

// shift moves the wall clock of a time by whole seconds, and gives it the monotonic part
// that a bubble's times lack: the time since the epoch of the bubble.
func shift(at time.Time, by time.Duration) time.Time {
	const hasMonotonic, secondBit = 1 << 63, 30
	first := time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC) // from which a wall clock counts
	shifted := at
	parts := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&shifted))
	parts.wall = hasMonotonic | uint64(at.Unix()-first.Unix()+int64(by/time.Second))<<secondBit | uint64(at.Nanosecond())
	parts.ext = int64(at.Sub(epoch)) + 1
	return shifted
}

// epoch is when the clock of each bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// sessions are those that a PC has.
var sessions = []string{"api", "docs"}

// start switches the PC on.
func (p *pc) start() {
	log := slog.New(slog.DiscardHandler)
	if p.world.log != nil {
		log = slog.New(slog.NewTextHandler(p.world.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("pc", p.name)
	}
	db, err := store.Open(context.Background(), p.home.DB(), store.Options{Now: p.now, Log: log})
	if err != nil {
		p.failedToStart(err)
		return
	}
	run := &running{db: db}
	run.broker, err = broker.New(context.Background(), broker.Options{
		Home: p.home, Settings: func() (config.Settings, error) { return p.home.Settings(func(string) string { return "" }) }, DB: db, Now: p.now, Log: log,
		Host: "serve", Version: "test", URL: func() string { return "" }, Retire: func() {},
		Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		p.world.failf("%s has no broker: %v", p.name, err)
		return
	}
	run.sharing = sharing.New(sharing.Options{
		Transport: transport{p.world.network, p, run}, Policy: p.policy, DB: db, Broker: checking{run.broker, p}, Now: p.now, Log: log,
	})
	run.broker.Share(run.sharing)
	if p.world.hasJobs {
		if err := p.startJobs(run, log); err != nil {
			p.world.failf("%s cannot open its jobs: %v", p.name, err)
			return
		}
	}
	p.mu.Lock()
	p.run, p.dead, p.frames = run, false, -1
	p.mu.Unlock()
	run.sharing.Run()
}

// failedToStart looks whether the PC crashed while it started.
func (p *pc) failedToStart(err error) {
	if !p.disk.isDead() {
		p.world.failf("%s cannot open its store: %v", p.name, err)
		return
	}
	p.world.trace.add("%s crashes while it starts", p.name)
	wake(p.crashed)
}

// stop ends what runs. After a crash nothing of it reaches the disk.
func (p *pc) stop() {
	p.mu.Lock()
	run := p.run
	p.run = nil
	p.mu.Unlock()
	if run == nil {
		return
	}
	run.sharing.Close()
	if run.jobs != nil {
		run.jobs.close()
	}
	run.broker.Close()
	crashed := p.disk.isDead()
	if err := run.db.Close(); err != nil && !crashed {
		p.world.failf("%s cannot close its store: %v", p.name, err)
	}
}

// die crashes the PC: nothing is written or sent any more. Whoever looks after it ends
// what runs.
func (p *pc) die() {
	p.mu.Lock()
	if p.run == nil || p.dead {
		p.mu.Unlock()
		return
	}
	p.dead = true
	p.mu.Unlock()
	p.disk.die()
	p.world.trace.add("%s crashes", p.name)
	wake(p.crashed)
}

// keepAlive switches the PC on again after each crash, and restarts its Bridge when it is
// asked to.
func (p *pc) keepAlive(ctx context.Context) {
	for crash := uint64(0); ; crash++ {
		isCrash := true
		select {
		case <-p.crashed:
		case <-p.updates:
			isCrash = false
		case <-ctx.Done():
			return
		}
		if !isCrash && p.hasCrashed() {
			continue // it is about to be switched on again
		}
		p.world.network.down(p)
		p.stop()
		keep := rand.New(rand.NewPCG(p.world.seed, uint64(p.number)<<32|crash))
		if isCrash {
			p.runners.endAll()
			p.disk.revive(p.t, keep)
		}
		select {
		case <-time.After(time.Duration(keep.IntN(30_000)) * time.Millisecond):
		case <-p.world.quiet:
		}
		if ctx.Err() != nil {
			return
		}
		p.start()
		p.world.trace.add("%s is on again", p.name)
	}
}

// hasCrashed reports whether the PC crashed and is not on again.
func (p *pc) hasCrashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.disk.isDead()
}

func (p *pc) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.run == nil
}

func (p *pc) isRunning(run *running) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run == run && !p.dead
}

// alive is what runs; nil while nothing does.
func (p *pc) alive() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil
	}
	return p.run
}

// dieAtFrame has the PC crash at the n-th frame that it sends from now on, before it
// leaves or after.
func (p *pc) dieAtFrame(n int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames, p.after = n, after
}

func (p *pc) dies() (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frames < 0 {
		return false, false
	}
	p.frames--
	return p.frames < 0 && !p.after, p.frames < 0 && p.after
}

// handle takes a frame that came.
func (p *pc) handle(from *pc, frame remote.Frame) {
	run, sender := p.alive(), remote.PC{ID: from.id, Name: from.name}
	switch {
	case run == nil:
	case frame.Type != remote.FrameType && frame.Type != remote.ReadsFrameType:
		run.sharing.Take(sender, frame)
	case run.jobs != nil:
		run.jobs.frames(sender, frame)
	}
}

// changed tells the PC that something is different.
func (p *pc) changed() {
	if run := p.alive(); run != nil {
		run.broker.Changed()
	}
}

// allowance is what an owner allowed until then.
type allowance struct {
	until  time.Time
	shares map[remote.Share]map[string]bool
}

// allow changes what the owner of the PC allows another one.
func (p *pc) allow(share remote.Share, name string, is bool) {
	p.mu.Lock()
	before := map[remote.Share]map[string]bool{}
	for share, names := range p.shares {
		before[share] = maps.Clone(names)
	}
	p.past = append(p.past, allowance{time.Now(), before})
	if p.shares[share] == nil {
		p.shares[share] = map[string]bool{}
	}
	p.shares[share][name] = is
	p.mu.Unlock()
	p.changed()
}

// allows reports whether the owner allows it now, or did since then.
func (p *pc) allows(share remote.Share, name string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, allowance := range p.past {
		if !allowance.until.Before(since) && allowance.shares[share][name] {
			return true
		}
	}
	return p.shares[share][name]
}

// policy reads the owner's settings, which may take long.
func (p *pc) policy() (remote.Policy, error) {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	if pause := time.Until(slow); pause > 0 {
		<-time.After(pause)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	policy := remote.Policy{Enabled: true, Shares: map[remote.Share][]string{}, RemoteJobs: remote.RemoteJobs{
		Enabled: true, AllowRoots: []string{p.root}, Agents: []bridge.AgentKind{bridge.Codex},
	}}
	for share, names := range p.shares {
		for _, other := range p.world.pcs {
			switch {
			case !names[other.name]:
			case share == shareJobs:
				policy.RemoteJobs.AllowPeers = append(policy.RemoteJobs.AllowPeers, other.name)
			default:
				policy.Shares[share] = append(policy.Shares[share], other.name)
			}
		}
	}
	return policy, nil
}

// checking is a broker that watches what it is asked to store.
type checking struct {
	*broker.Broker
	p *pc
}

// policyAge is how old what the owner said may be when something is stored by it: it was
// asked before, and the store may have been busy.
const policyAge = 10 * time.Second

func (c checking) StoreFrom(ctx context.Context, pc remote.PC, letters []remote.Letter, shift int64) []error {
	if len(letters) > 0 && !c.p.allows(remote.ShareMessages, pc.Name, time.Now().Add(-policyAge)) {
		c.p.world.failf("%s stores messages of %s, which its owner does not allow", c.p.name, pc.Name)
	}
	return c.Broker.StoreFrom(ctx, pc, letters, shift)
}

func (c checking) Import(ctx context.Context, pc remote.PC, revisions []decision.Revision, tell bool) (int, error) {
	if !c.p.allows(remote.ShareDecisions, pc.Name, time.Now().Add(-policyAge)) {
		c.p.world.failf("%s stores decisions of %s, which its owner does not allow", c.p.name, pc.Name)
	}
	return c.Broker.Import(ctx, pc, revisions, tell)
}

// write stores a message to a session of another PC, as the broker does. It reports
// whether that was acknowledged.
func (p *pc) write(id, session string, to *pc) bool {
	run := p.alive()
	if run == nil {
		return false
	}
	address := to.name + "/" + session
	_, _, err := run.db.Remote().Append(context.Background(), bridge.Message{
		ID: id, Recipient: address, From: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}, To: address, ConversationID: "talk", Body: "body of " + id, CreatedAt: p.now().UnixMilli(),
	}, to.id)
	run.sharing.Waiting(to.id)
	run.broker.Changed()
	return err == nil
}

// read has a session read the first message that it has not read.
func (p *pc) read(session string) {
	run := p.alive()
	if run == nil {
		return
	}
	unread, err := run.db.Unread(context.Background(), "peer-"+session, 1, nil)
	if err != nil || len(unread) == 0 {
		return
	}
	mark := mail.Mark{MessageID: unread[0].ID, Recipient: "peer-" + session, At: p.now().UnixMilli(), Via: mail.ViaTool, Evidence: "tool inbox"}
	_ = run.db.Record(context.Background(), bridge.StageConsumed, []mail.Mark{mark}) // the PC may crash
	run.broker.Changed()
}

// decide records a decision for all sessions. It reports whether that was acknowledged.
func (p *pc) decide(id string) bool {
	run := p.alive()
	if run == nil {
		return false
	}
	_, _, err := run.db.RecordDecision(context.Background(), decision.Revision{
		ID: id, Topic: id, Text: "x", Scope: decision.AllSessions(),
		Author: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}, CreatedAt: p.now().UnixMilli(),
	}, func(decision.Revision) []decision.Notification { return nil })
	run.broker.Changed()
	return err == nil
}
