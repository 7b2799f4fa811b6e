package sharing

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/agent"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) {
	serveHub()
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, "rapid.checks") }) {
		// Each of the model's writes is a synced commit; -rapid.checks asks for more.
		if err := flag.Set("rapid.checks", "10"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// pc is one PC of a test: a store and a broker of its own, and sharing over one end of
// a transport. What it does can be broken off at any frame that it sends.
type pc struct {
	t    *testing.T
	name string
	home config.Home
	end  *pairingtest.End
	fast time.Duration // how far its clock is ahead

	spool pairing.Spool // set before start

	db      *store.DB
	broker  *broker.Broker
	sharing *Sharing

	mu     sync.Mutex
	shares map[remote.Share][]string
	trip   func(remote.Frame) (before, after bool) // of each frame that it sends: break off
	broken chan struct{}                           // closed when it broke off
	dead   atomic.Bool
	held   sync.RWMutex // while it is locked, whoever asks the policy waits
	cut    atomic.Bool  // no link is up
	link   atomic.Int64 // counts the links that were

	refused map[bridge.Code]int // of what came, guarded by mu

	peers []api.Peer    // who is connected; set before start
	jobs  []api.JobView // its delegated jobs
}

// shown is a broker with those sessions.
type shown struct {
	*broker.Broker
	peers []api.Peer
}

func (s shown) Peers(context.Context) ([]api.Peer, error) { return s.peers, nil }

func newPC(t *testing.T, name string, end *pairingtest.End) *pc {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), name), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	p := &pc{t: t, name: name, home: home, end: end, shares: map[remote.Share][]string{}}
	t.Cleanup(p.stop)
	return p
}

// everything allows the other PC everything.
func (p *pc) everything(other string) *pc {
	p.allow(other, remote.ShareMessages, remote.ShareDecisions, remote.ShareDashboard)
	return p
}

func (p *pc) allow(other string, shares ...remote.Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, share := range shares {
		p.shares[share] = []string{other}
	}
}

func (p *pc) deny(shares ...remote.Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, share := range shares {
		delete(p.shares, share)
	}
}

func (p *pc) policy() (remote.Policy, error) {
	p.held.RLock()
	defer p.held.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	shares := map[remote.Share][]string{}
	for share, names := range p.shares {
		shares[share] = names
	}
	return remote.Policy{Enabled: true, Shares: shares}, nil
}

func (p *pc) now() time.Time { return time.Now().Add(p.fast) }

// start opens the PC's store and serves.
func (p *pc) start() *pc {
	p.t.Helper()
	log := slog.New(slog.DiscardHandler)
	var err error
	if p.db, err = store.Open(p.t.Context(), p.home.DB(), store.Options{Now: p.now, Log: log}); err != nil {
		p.t.Fatal(err)
	}
	for _, name := range []string{"api", "docs"} {
		peer := store.Peer{ID: "peer-" + name, Name: name, Agent: bridge.Claude, SessionID: "host-" + name, SeenAt: 1}
		if err := p.db.SavePeer(p.t.Context(), peer); err != nil {
			p.t.Fatal(err)
		}
	}
	p.broker, err = broker.New(p.t.Context(), broker.Options{
		Home: p.home, Settings: func() (config.Settings, error) { return p.home.Settings(func(string) string { return "" }) }, DB: p.db, Now: p.now, Log: log,
		Host: "serve", Version: "test", URL: func() string { return "" }, Retire: func() {},
		Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.dead.Store(false)
	p.broken = make(chan struct{})
	p.sharing = New(Options{
		Transport: breaking{p.end, p}, Spool: p.spool, Policy: p.policy, DB: p.db, Broker: shown{p.broker, p.peers}, Jobs: func() []api.JobView { return p.jobs }, Now: p.now, Log: log,
		Refused: func(_ remote.PC, why error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.refused == nil {
				p.refused = map[bridge.Code]int{}
			}
			p.refused[bridge.CodeOf(why)]++
		},
		Timing: Timing{PollInterval: 20 * time.Millisecond, Resend: 300 * time.Millisecond, Recall: 2 * time.Second, Held: 200 * time.Millisecond, Answer: 10 * time.Second, Fresh: time.Hour},
	})
	p.broker.Share(p.sharing)
	running := p.sharing // stop sets the field to nil while a frame may still arrive
	p.end.Serve(func(from remote.PC, frame remote.Frame) {
		if !p.dead.Load() && !p.cut.Load() {
			running.Take(from, frame)
		}
	})
	p.sharing.Run()
	return p
}

// stop ends the PC; what it had in memory is gone.
func (p *pc) stop() {
	if p.sharing == nil {
		return
	}
	p.dead.Store(true)
	p.sharing.Close()
	p.broker.Close()
	if err := p.db.Close(); err != nil {
		p.t.Error(err)
	}
	p.sharing = nil
}

// breaking is a PC's transport: a PC that breaks off sends nothing any more.
type breaking struct {
	*pairingtest.End
	p *pc
}

func (b breaking) Send(ctx context.Context, id string, frame remote.Frame) error {
	b.p.mu.Lock()
	trip, broken := b.p.trip, b.p.broken
	before, after := false, false
	if trip != nil && !b.p.dead.Load() {
		before, after = trip(frame)
	}
	if before || after {
		b.p.trip = nil
	}
	b.p.mu.Unlock()
	if b.p.dead.Load() || b.p.cut.Load() {
		return bridge.Errorf(bridge.Unavailable, "this PC is off")
	}
	var err error
	if !before {
		err = b.End.Send(ctx, id, frame)
	}
	if before || after {
		b.p.dead.Store(true)
		close(broken)
		err = bridge.Errorf(bridge.Unavailable, "this PC is off")
	}
	return err
}

// Of is pairing.Transport's.
func (b breaking) Of(id string) (remote.Status, error) {
	status, err := b.End.Of(id)
	return b.now(status), err
}

// Status is pairing.Transport's.
func (b breaking) Status() (all []remote.Status) {
	for _, status := range b.End.Status() {
		all = append(all, b.now(status))
	}
	return all
}

func (b breaking) now(status remote.Status) remote.Status {
	if b.p.cut.Load() {
		status.Up = false
	}
	if n := b.p.link.Load(); n > 0 {
		status.Since = time.Unix(n, 0)
	}
	return status
}

// write stores a message to a session of the other PC, as the broker does.
func (p *pc) write(id, to string, other *pc) {
	p.t.Helper()
	p.writeBody(id, to, other, "body of "+id)
}

func (p *pc) writeBody(id, to string, other *pc, body string) {
	p.t.Helper()
	address := other.name + "/" + to
	message := bridge.Message{
		ID: id, Recipient: address, From: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}, To: address, ConversationID: "talk", Body: body, CreatedAt: p.now().UnixMilli(),
	}
	if _, _, err := p.db.Remote().Append(context.Background(), message, other.end.Self.ID); err != nil {
		p.t.Fatal(err)
	}
	p.sharing.Waiting(other.end.Self.ID)
	p.broker.Changed()
}

// mail is what a session here was sent, in the order in which it was stored.
func (p *pc) mail(session string) []bridge.Message {
	p.t.Helper()
	rows, err := p.db.Recent(context.Background(), 20_000)
	if err != nil {
		p.t.Fatal(err)
	}
	var found []bridge.Message
	for _, row := range slices.Backward(rows) {
		for _, d := range row.Deliveries {
			if d.Recipient == "peer-"+session {
				found = append(found, d.Message)
			}
		}
	}
	return found
}

func ids(messages []bridge.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}

// stage is how far a message that was sent from here has come.
func (p *pc) stage(id string) (bridge.Stage, mail.Fact) {
	p.t.Helper()
	row, err := p.db.Find(context.Background(), id)
	if err != nil || len(row.Deliveries) != 1 {
		p.t.Fatalf("%s has %s as %+v, %v", p.name, id, row, err)
	}
	return row.Deliveries[0].Reached()
}

// await waits until it is so: the broker tells of each change.
func (p *pc) await(what string, is func() bool) {
	p.t.Helper()
	changes, stop := p.broker.Watch()
	defer stop()
	limit := time.After(testkit.Patience)
	for !is() {
		select {
		case <-changes:
		case <-time.After(10 * time.Millisecond): // some of it changes without a word
		case <-limit:
			p.t.Fatalf("%s: this never came: %s", p.name, what)
		}
	}
}

func (p *pc) awaitStage(id string, want bridge.Stage) mail.Fact {
	p.t.Helper()
	var fact mail.Fact
	p.await(id+" "+string(want), func() bool {
		var stage bridge.Stage
		stage, fact = p.stage(id)
		return stage == want
	})
	return fact
}

// mark stores what a session here did with a message.
func (p *pc) mark(stage bridge.Stage, id, session string) {
	p.t.Helper()
	m := mail.Mark{MessageID: id, Recipient: "peer-" + session, At: p.now().UnixMilli(), Via: mail.ViaTool, Evidence: "tool inbox"}
	if err := p.db.Record(context.Background(), stage, []mail.Mark{m}); err != nil {
		p.t.Fatal(err)
	}
	p.broker.Changed()
}

// overEach runs a test over each transport.
func overEach(t *testing.T, test func(t *testing.T, laptop, desk *pc)) {
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			pc, other := join(t, Capabilities()...)
			test(t, newPC(t, "laptop", pc), newPC(t, "desk", other))
		})
	}
}

// TestHUB_02_WhatCannotBeSealedWaitsAndSaysWhy: also for a PC that is there.
func TestHUB_02_WhatCannotBeSealedWaitsAndSaysWhy(t *testing.T) {
	pc, other := pairingtest.Keyless(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).start(), newPC(t, "desk", other)
	desk.everything("laptop").start()
	laptop.write("m-1", "api", desk)
	const why = "waiting for desk: this PC seals what it sends through its team (network.hub.seal), and desk has no key to seal to: "
	laptop.await("why it waits", func() bool {
		row, err := laptop.db.Find(t.Context(), "m-1")
		return err == nil && strings.HasPrefix(row.Deliveries[0].Remote.Words(), why)
	})
	if got := desk.mail("api"); len(got) != 0 {
		t.Errorf("desk has %v", ids(got))
	}
}

func TestRMT_21_AMessageCrossesOnceAndItsReceiptsComeBack(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.fast = 7 * time.Minute // the clocks differ
		laptop.start()
		desk.everything("laptop").start()
		began := time.Now().Add(-time.Second).UnixMilli()
		laptop.write("m-1", "api", desk)
		laptop.write("m-2", "host-docs", desk) // by the host session's id
		if fact := laptop.awaitStage("m-1", bridge.StageArrived); fact.Evidence != "desk has stored it" {
			t.Errorf("it arrived as %+v", fact)
		}
		laptop.awaitStage("m-2", bridge.StageArrived)
		got := desk.mail("api")
		if len(got) != 1 || len(desk.mail("docs")) != 1 {
			t.Fatalf("desk has %v and %v", ids(got), ids(desk.mail("docs")))
		}
		from := bridge.Address{ID: "laptop/docs", Name: "laptop/docs", Agent: bridge.Codex}
		if m := got[0]; m.From != from || m.To != "api" || m.Body != "body of m-1" || m.ConversationID != "talk" {
			t.Errorf("it is %+v", m)
		}
		if at := got[0].CreatedAt; at < began || at > time.Now().UnixMilli() {
			t.Errorf("desk has it as of %v by its own clock, sent since %v", time.UnixMilli(at), time.UnixMilli(began))
		}
		for _, step := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
			desk.mark(step, "m-1", "api")
			fact := laptop.awaitStage("m-1", step)
			if fact.Evidence != "tool inbox" || fact.At < began+laptop.fast.Milliseconds() || fact.At > laptop.now().UnixMilli() {
				t.Errorf("%s is %+v by the laptop's clock", step, fact)
			}
		}
		// A reply goes back the same way, and marks both sides.
		laptop.everything("desk")
		reply := bridge.Message{
			ID: "m-3", Recipient: "laptop/docs", From: bridge.Address{ID: "peer-api", Name: "api", Agent: bridge.Claude}, To: "laptop/docs",
			ConversationID: "talk", ReplyTo: "m-1", Hop: 1, Body: "yes", CreatedAt: desk.now().UnixMilli(),
		}
		if _, _, err := desk.db.Remote().Append(t.Context(), reply, laptop.end.Self.ID); err != nil {
			t.Fatal(err)
		}
		desk.broker.Changed()
		laptop.awaitStage("m-1", bridge.StageAnswered)
		laptop.await("the reply", func() bool { return len(laptop.mail("docs")) == 1 })
		if m := laptop.mail("docs")[0]; m.ReplyTo != "m-1" || m.Hop != 1 || m.From.Name != "desk/api" {
			t.Errorf("the reply is %+v", m)
		}
	})
}

func TestRMT_21_WhatTheOtherOwnerDoesNotAllowIsRefusedByName(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.start()
		desk.start()
		refused := func(id, to, want string) {
			t.Helper()
			laptop.write(id, to, desk)
			if fact := laptop.awaitStage(id, bridge.StageRefused); !strings.Contains(fact.Evidence, want) {
				t.Errorf("to %s: %q, want %q", to, fact.Evidence, want)
			}
		}
		refused("m-1", "api", "messages of laptop are not allowed here (network.messages.allowPeers)")
		desk.everything("laptop")
		laptop.write("m-2", "api", desk)
		laptop.awaitStage("m-2", bridge.StageArrived)
		refused("m-3", "nobody", `no session is called "nobody"`)
		refused("m-4", "*", "for one session")
		desk.deny(remote.ShareMessages)
		refused("m-5", "api", "not allowed here")
		// What came before stays known: a repeated copy is no new request.
		again := func(to string) {
			t.Helper()
			out, later, err := desk.sharing.pair(remote.PC{ID: laptop.end.Self.ID, Name: "laptop"}).storeLetters(t.Context(), []remote.Letter{{
				ID: "m-2", To: to, From: "docs", ConversationID: "talk", Body: "body of m-2", CreatedAt: 1,
			}}, 0)
			if err != nil || later != nil || len(out.Arrivals) != 1 || out.Arrivals[0].Error != nil {
				t.Errorf("a copy of what was stored is refused: %+v, %v, %v", out, later, err)
			}
		}
		again("api")
		desk.everything("laptop")
		again("gone") // its letter came when it was there
		desk.deny(remote.ShareMessages)
		if got := ids(desk.mail("api")); !slices.Equal(got, []string{"m-2"}) {
			t.Errorf("desk has %v", got)
		}
		// Nothing that was refused is sent again by itself.
		desk.everything("laptop")
		laptop.write("m-6", "api", desk)
		laptop.awaitStage("m-6", bridge.StageArrived)
		if got := ids(desk.mail("api")); !slices.Equal(got, []string{"m-2", "m-6"}) {
			t.Errorf("afterwards desk has %v", got)
		}
	})
}

// TestHUB_04_WhatIsRefusedIsCountedByReason: letters that the owner does not allow and
// frames that are none; what its sender could not know, and a view that is not shown, is
// answered and not counted.
func TestHUB_04_WhatIsRefusedIsCountedByReason(t *testing.T) {
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).start(), newPC(t, "desk", other).start()
	counted := func(want map[bridge.Code]int) {
		t.Helper()
		desk.await(fmt.Sprintf("the count %v", want), func() bool {
			desk.mu.Lock()
			defer desk.mu.Unlock()
			return maps.Equal(desk.refused, want)
		})
	}
	laptop.write("m-1", "api", desk)
	laptop.awaitStage("m-1", bridge.StageRefused)
	counted(map[bridge.Code]int{bridge.Denied: 1})
	send := func(frameType, payload string) {
		t.Helper()
		if err := pc.Send(t.Context(), other.Self.ID, remote.Frame{Type: frameType, Payload: json.RawMessage(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	send(remote.DecisionsFrame, `{"kind":"sync-request","since":{"createdAt":0,"id":""}}`)
	send(remote.DashboardFrame, `{"kind":"nonsense"}`)
	send(remote.MessagesFrame, `{"letters":"none"}`)
	counted(map[bridge.Code]int{bridge.Denied: 2, bridge.Invalid: 1})
	desk.everything("laptop")
	send(remote.DecisionsFrame, `{"kind":"sync-state","decisions":[{}]}`)
	laptop.write("m-2", "nobody", desk)
	laptop.awaitStage("m-2", bridge.StageRefused)
	laptop.write("m-3", "api", desk)
	laptop.awaitStage("m-3", bridge.StageArrived)
	counted(map[bridge.Code]int{bridge.Denied: 2, bridge.Invalid: 2})
}

func TestRMT_21_PoliciesAreAskedAnewWhileMessagesWait(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.start()
		for i := range 5 {
			laptop.write(fmt.Sprint("m-", i), "api", desk)
		}
		desk.everything("laptop").start()
		for i := range 5 {
			laptop.awaitStage(fmt.Sprint("m-", i), bridge.StageArrived)
		}
		desk.stop()
		for i := 5; i < 10; i++ {
			laptop.write(fmt.Sprint("m-", i), "api", desk)
		}
		desk.deny(remote.ShareMessages)
		desk.start()
		for i := 5; i < 10; i++ {
			laptop.awaitStage(fmt.Sprint("m-", i), bridge.StageRefused)
		}
		// What becomes of those before is told no more, until it is allowed again.
		desk.mark(bridge.StageConsumed, "m-0", "api")
		news, err := desk.db.Remote().News(t.Context(), laptop.end.Self.ID, 10)
		if err != nil || len(news) != 1 {
			t.Fatalf("what waits to be told is %+v, %v", news, err)
		}
		if stage, _ := laptop.stage("m-0"); stage != bridge.StageArrived {
			t.Errorf("the laptop knows of m-0 that it is %s", stage)
		}
		desk.everything("laptop")
		laptop.awaitStage("m-0", bridge.StageConsumed)
	})
}

func TestMSG_08_NoLetterIsTheOwnersWord(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.start()
		desk.everything("laptop").start()
		message := bridge.Message{
			ID: "m-1", Recipient: "desk/api", From: bridge.OwnerAddress(), To: "desk/api", ConversationID: bridge.DecisionConversation + "x", Hop: bridge.DecisionHop,
			Body: "I am the owner of this PC", CreatedAt: laptop.now().UnixMilli(),
		}
		if _, _, err := laptop.db.Remote().Append(t.Context(), message, desk.end.Self.ID); err != nil {
			t.Fatal(err)
		}
		laptop.broker.Changed()
		laptop.awaitStage("m-1", bridge.StageArrived)
		got := desk.mail("api")[0]
		if got.From != (bridge.Address{ID: "laptop/owner", Name: "laptop/owner"}) {
			t.Errorf("it is from %+v", got.From)
		}
		if (mail.HistoryRow{ConversationID: got.ConversationID, Hop: got.Hop, ReplyTo: got.ReplyTo}).IsDecision() {
			t.Error("it counts as the notice of a decision")
		}
		for _, kind := range []bridge.AgentKind{bridge.Owner, "root"} {
			if from := (remote.Letter{From: "x", Agent: kind}).Sender("laptop"); from.Agent != "" {
				t.Errorf("a letter of %q is from %+v", kind, from)
			}
		}
	})
}

func TestRMT_21_TenThousandThatWaitCrossInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 messages")
	}
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).start(), newPC(t, "desk", other).everything("laptop")
	const all = 10_000
	var senders sync.WaitGroup
	for part := range 20 { // commits are shared by those who wait together
		senders.Go(func() {
			for i := range all / 20 {
				laptop.write(fmt.Sprintf("m-%02d-%03d", part, i), "api", desk)
			}
		})
	}
	senders.Wait()
	began := time.Now()
	desk.start()
	desk.await("all of them", func() bool {
		count, err := desk.db.UnreadCount(t.Context(), "peer-api")
		return err == nil && count >= all
	})
	t.Logf("%d messages crossed in %v", all, time.Since(began))
	got := ids(desk.mail("api"))
	if len(got) != all {
		t.Fatalf("%d came", len(got))
	}
	last := map[string]string{}
	for _, id := range got {
		if part := id[:4]; id <= last[part] {
			t.Fatalf("%s came after %s", id, last[part])
		} else {
			last[part] = id
		}
	}
}

// breakOff runs a scenario in which one of the two breaks off at its nth frame, before
// or after it is out, and comes again; it reports whether it came to that frame.
func breakOff(t *testing.T, n int, after, breaksLaptop bool) (broke bool) {
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc), newPC(t, "desk", other)
	laptop.everything("desk")
	desk.everything("laptop")
	victim := desk
	if breaksLaptop {
		victim = laptop
	}
	count := 0
	victim.trip = func(remote.Frame) (bool, bool) {
		count++
		return count == n && !after, count == n && after
	}
	laptop.start()
	desk.start()
	ended := make(chan struct{})
	revived := make(chan bool, 1)
	broken := victim.broken
	var turn sync.Mutex // whoever looks at the PCs holds it
	go func() {
		select {
		case <-broken:
			turn.Lock()
			victim.stop()
			victim.start()
			turn.Unlock()
			revived <- true
		case <-ended:
			revived <- false
		}
	}()
	within := func(do func()) {
		turn.Lock()
		defer turn.Unlock()
		do()
	}
	until := func(what string, is func() bool) {
		t.Helper()
		limit := time.Now().Add(testkit.Patience)
		for done := false; !done; {
			within(func() { done = is() })
			if time.Now().After(limit) {
				t.Fatalf("frame %d, after %v, laptop %v: this never came: %s", n, after, breaksLaptop, what)
			}
			if !done {
				<-time.After(2 * time.Millisecond) // the PCs come and go
			}
		}
	}
	for i := range 3 {
		within(func() { laptop.write(fmt.Sprint("m-", i), "api", desk) })
	}
	until("all arrived", func() bool {
		stage, _ := laptop.stage("m-2")
		return stage == bridge.StageArrived
	})
	within(func() {
		desk.mark(bridge.StageConsumed, "m-0", "api")
		desk.mark(bridge.StageHanded, "m-1", "api")
	})
	until("the receipts", func() bool {
		first, _ := laptop.stage("m-0")
		second, _ := laptop.stage("m-1")
		news, err := desk.db.Remote().News(context.Background(), laptop.end.Self.ID, 10)
		return first == bridge.StageConsumed && second == bridge.StageHanded && err == nil && len(news) == 0
	})
	close(ended)
	broke = <-revived
	if got := ids(desk.mail("api")); !slices.Equal(got, []string{"m-0", "m-1", "m-2"}) {
		t.Fatalf("frame %d, after %v, laptop %v: desk has %v", n, after, breaksLaptop, got)
	}
	return broke
}

func TestRMT_21_ACrashBetweenAnyTwoStepsLosesAndDoublesNothing(t *testing.T) {
	for _, side := range []string{"laptop", "desk"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", side, after), func(t *testing.T) {
				n := 1
				for breakOff(t, n, after, side == "laptop") {
					n++
				}
				if n < 4 {
					t.Errorf("only %d frames were sent", n-1)
				}
			})
		}
	}
}

func TestRMT_22_DecisionsForAllAreExchangedAndAgreed(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.fast = -5 * time.Minute
		laptop.everything("desk").start()
		desk.everything("laptop").start()
		laptop.stop()
		decide := func(p *pc, id, topic, text string, scope decision.Scope) decision.Revision {
			t.Helper()
			rev, _, err := p.db.RecordDecision(context.Background(), decision.Revision{
				ID: id, Topic: topic, Text: text, Scope: scope, Author: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}, CreatedAt: p.now().UnixMilli(),
			}, func(decision.Revision) []decision.Notification { return nil })
			if err != nil {
				t.Fatal(err)
			}
			p.broker.Changed()
			return rev
		}
		for i := range 60 { // more than fit two frames
			decide(desk, fmt.Sprintf("d-%02d", i), "topic "+fmt.Sprint(i), "text", decision.AllSessions())
		}
		decide(desk, "secret-1", "project", "stays", decision.ProjectOf("/src"))
		decide(desk, "secret-2", "sessions", "stays", decision.Scope{Sessions: []string{"api"}})
		decide(desk, "newer", "editor", "desk says", decision.AllSessions())
		laptop.start()
		decide(laptop, "older", "editor", "laptop says", decision.AllSessions()) // by a clock that is behind
		has := func(p *pc) map[string]decision.Revision {
			all, err := p.db.Decisions(context.Background(), decision.Lookup{History: true})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]decision.Revision{}
			for _, rev := range all {
				if _, twice := found[rev.ID]; twice {
					t.Fatalf("%s has %s twice", p.name, rev.ID)
				}
				found[rev.ID] = rev
			}
			return found
		}
		laptop.await("desk's decisions", func() bool { return len(has(laptop)) == 62 })
		desk.await("the laptop's decision", func() bool { return len(has(desk)) == 64 })
		agree := func(current string) {
			t.Helper()
			for _, p := range []*pc{laptop, desk} {
				for _, id := range []string{"newer", "older", "last"} {
					if rev, known := has(p)[id]; known && rev.Current != (id == current) {
						t.Errorf("on %s %s is current: %v, and %s should be", p.name, id, rev.Current, current)
					}
				}
			}
		}
		agree("newer")
		if rev := has(laptop)["newer"]; rev.Author.Name != "desk/docs" || rev.Author.ID != "desk/docs" || rev.Text != "desk says" || !rev.Scope.All {
			t.Errorf("on the laptop it is %+v", rev)
		}
		for _, id := range []string{"secret-1", "secret-2"} {
			if _, known := has(laptop)[id]; known {
				t.Errorf("%s left its PC", id)
			}
		}
		// What is decided here and now counts, whatever the clocks say.
		if rev := decide(laptop, "last", "editor", "laptop says again", decision.AllSessions()); *rev.Supersedes != "newer" {
			t.Errorf("it supersedes %s", *rev.Supersedes)
		}
		desk.await("the last word", func() bool { _, known := has(desk)["last"]; return known })
		agree("last")
	})
}

func TestRMT_22_OnlyWhatBothOwnersAllow(t *testing.T) {
	for _, silent := range []string{"laptop", "desk"} {
		end, other := pairingtest.InMemory(t, Capabilities()...)
		laptop, desk := newPC(t, "laptop", end), newPC(t, "desk", other)
		laptop.everything("desk")
		desk.everything("laptop")
		of := map[string]*pc{"laptop": laptop, "desk": desk}
		of[silent].deny(remote.ShareDecisions)
		laptop.start()
		desk.start()
		laptop.decide("of-laptop")
		desk.decide("of-desk")
		laptop.write("fence", "api", desk) // all that was sent before it has come by then
		laptop.awaitStage("fence", bridge.StageArrived)
		desk.write("fence-2", "api", laptop)
		desk.awaitStage("fence-2", bridge.StageArrived)
		for _, p := range of {
			if all, err := p.db.Decisions(t.Context(), decision.Lookup{}); err != nil || len(all) != 1 {
				t.Errorf("with %s silent %s has %d decisions, %v", silent, p.name, len(all), err)
			}
		}
		of[silent].everything(map[string]string{"laptop": "desk", "desk": "laptop"}[silent])
		for _, p := range of {
			p.awaitDecisions(2)
		}
	}
}

func TestRMT_23_WhatAPCShowsOfEach(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		began := time.Now().Add(-time.Hour).UnixMilli()
		desk.fast = 10 * time.Minute // times are told by the clock of whoever asks
		theirs := began + desk.fast.Milliseconds()
		desk.peers = []api.Peer{
			{ID: "p1", Name: "api", Agent: bridge.Codex, State: "busy", Cwd: "/src/api", Since: theirs},
			{ID: "p2", Name: "codex-job-00000001", Agent: bridge.Codex, State: "busy", Cwd: "/src/api", Since: theirs},
		}
		desk.jobs = []api.JobView{{Job: "codex-job-00000001", Agent: bridge.Codex, Status: job.Running, Title: strings.Repeat("é", 200), Workdir: "/src/api", StartedAt: theirs}}
		laptop.start()
		desk.start()
		for _, tt := range []struct {
			share    remote.Share
			sessions []api.RemoteSession
			jobs     []api.RemoteJob
		}{
			{remote.ShareMessages, []api.RemoteSession{{Name: "desk/api", Agent: bridge.Codex, State: "busy", Since: began}}, []api.RemoteJob{}},
			{
				remote.ShareDashboard,
				[]api.RemoteSession{{Name: "desk/api", Agent: bridge.Codex, State: "busy", Cwd: "/src/api", Since: began}},
				[]api.RemoteJob{{Name: "desk/codex-job-00000001", Agent: bridge.Codex, Status: "running", Title: strings.Repeat("é", 160) + "…", Cwd: "/src/api", Since: began}},
			},
		} {
			desk.deny(remote.ShareMessages, remote.ShareDashboard)
			desk.allow("laptop", tt.share)
			laptop.sharing.pair(remote.PC{ID: desk.end.Self.ID, Name: "desk"}).views.asOf = 0
			got := laptop.sharing.Lists(t.Context()).Peers[0]
			for i := range got.Sessions {
				got.Sessions[i].Since = near(got.Sessions[i].Since, began)
			}
			for i := range got.Jobs {
				got.Jobs[i].Since = near(got.Jobs[i].Since, began)
			}
			if !slices.Equal(got.Sessions, tt.sessions) || !slices.Equal(got.Jobs, tt.jobs) || got.Failed != "" {
				t.Errorf("allowed %s it shows %+v", tt.share, got)
			}
		}
	})
}

// near is want where at is that, but for what an answer takes.
func near(at, want int64) int64 {
	if d := at - want; d > -60_000 && d < 60_000 {
		return want
	}
	return at
}

func TestRMT_23_APCShowsWhatItsOwnerAllows(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.start()
		desk.start()
		look := func() (list remote.List, failed string) {
			laptop.sharing.pair(remote.PC{ID: desk.end.Self.ID, Name: "desk"}).views.asOf = 0
			got := laptop.sharing.Lists(t.Context())
			if len(got.Peers) != 1 || got.Peers[0].Name != "desk" || got.Peers[0].Sessions == nil || got.Peers[0].Jobs == nil {
				t.Fatalf("the lists are %+v", got)
			}
			return remote.List{Messages: got.Peers[0].Messages, Shown: got.Peers[0].AsOf != 0}, got.Peers[0].Failed
		}
		if list, failed := look(); list.Shown || !strings.HasPrefix(failed, "desk says: ") || !strings.Contains(failed, "network.dashboard.allowPeers") {
			t.Errorf("denied it is %+v, %q", list, failed)
		}
		desk.allow("laptop", remote.ShareMessages)
		if list, failed := look(); !list.Messages || !list.Shown || failed != "" {
			t.Errorf("with messages it is %+v, %q", list, failed)
		}
		desk.allow("laptop", remote.ShareDashboard)
		desk.deny(remote.ShareMessages)
		if list, failed := look(); list.Messages || !list.Shown || failed != "" {
			t.Errorf("with the dashboard it is %+v, %q", list, failed)
		}
		desk.deny(remote.ShareDashboard)
		if list, failed := look(); list.Shown || failed == "" {
			t.Errorf("denied again it is %+v, %q", list, failed)
		}
	})
}

func TestRMT_03_APeerThatCannotShareHasToBeUpdated(t *testing.T) {
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := join(t, "remote-jobs-v1", "holograms-v1")
			laptop := newPC(t, "laptop", a).everything("desk").start()
			newPC(t, "desk", b).everything("laptop").start()
			if _, err := laptop.sharing.PC("desk"); bridge.CodeOf(err) != bridge.Unsupported || err.Error() != "desk runs Bridge 1.0, which does not know messages-v1: update Bridge there" {
				t.Errorf("a message: %v", err)
			}
			lists := laptop.sharing.Lists(t.Context())
			if len(lists.Peers) != 1 || lists.Peers[0].Failed != "desk runs Bridge 1.0, which does not know dashboard-read-v1: update Bridge there" {
				t.Errorf("its sessions and jobs: %+v", lists.Peers)
			}
		})
	}
}
