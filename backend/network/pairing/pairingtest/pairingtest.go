// Package pairingtest joins two PCs of a test by each of the transports, so that what
// goes over one is seen to go over the other as well (RMT-24).
package pairingtest

import (
	"context"
	"crypto/tls"
	"hash/crc32"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/link"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/testing/testkit"
)

// End is one PC's end of a transport.
type End struct {
	pairing.Transport
	Self remote.PC

	serve atomic.Pointer[func(remote.PC, remote.Frame)]
	cut   func()
}

// Serve has frames handed to whoever serves them; they are dropped before.
func (e *End) Serve(serve func(from remote.PC, frame remote.Frame)) { e.serve.Store(&serve) }

func (e *End) handle(from remote.PC, frame remote.Frame) {
	if serve := e.serve.Load(); serve != nil {
		(*serve)(from, frame)
	}
}

// Cut ends the connection for good, for both.
func (e *End) Cut() { e.cut() }

// Join makes two PCs that know each other as laptop and desk, and waits until they are
// connected. can are the capabilities that each PC announces.
type Join func(t *testing.T, can ...string) (laptop, desk *End)

// all are the transports that there are, by name: a pair link, a team's hub, one that
// carries what is sealed, a server of the team's own, which differs from a hub in how one
// logs in and trusts the roster only, and one within the process.
func all() map[string]Join {
	return map[string]Join{"link": Linked, "hub": OnHub, "sealed": Sealed, "own": OnExternal, "memory": InMemory}
}

// Transports are those that a test goes over: in a long run all, else one of the two
// that most people have, by the test's name. That each does the same is tested for itself
// in every run.
func Transports(t testing.TB) map[string]Join {
	if testkit.IsLong() {
		return all()
	}
	name := "link"
	if crc32.ChecksumIEEE([]byte(t.Name()))%2 == 0 {
		name = "hub"
	}
	return map[string]Join{name: all()[name]}
}

var now = time.Now //nolint:forbidigo // of real connections

// Linked joins them by a pair link over loopback.
func Linked(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	invitation := link.NewInvitation(now)
	a, b := newPC(t, "laptop", can), newPC(t, "desk", can)
	paired := make(chan error, 1)
	listener, err := link.Listen(t.Context(), b.identity, []string{"127.0.0.1"}, 0, link.Doors{
		Known:  func(id string) error { _, err := b.book.ByID(id); return err },
		Linked: b.links.Take,
		Invitation: func() *link.Invitation {
			return invitation
		},
		Joining: func(conn *tls.Conn, invitation *link.Invitation) {
			_, err := invitation.Admit(conn, b.identity, b.book, "desk")
			paired <- err
		},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Close)
	if _, err := link.Join(t.Context(), a.identity, a.book, "laptop", listener.Addresses()[0], invitation.Code); err != nil {
		t.Fatal(err)
	}
	if err := next(t, "the end of the pairing", paired); err != nil {
		t.Fatal(err)
	}
	a.links.Refresh()
	for _, p := range []*pc{a, b} {
		for !p.isUp() {
			next(t, "the connection", p.changed)
		}
	}
	var once sync.Once
	cut := func() {
		once.Do(func() {
			a.off.Store(true)
			b.off.Store(true)
			a.links.Refresh()
			b.links.Refresh()
			for _, p := range []*pc{a, b} {
				for p.isUp() {
					next(t, "the end of the connection", p.changed)
				}
			}
		})
	}
	a.cut, b.cut = cut, cut
	return &a.End, &b.End
}

// OnHub joins them by a team's hub over loopback (HUB-04).
func OnHub(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	return onNATS(t, func(hubtest.PC, *hub.Options) {}, can)
}

// OnExternal joins them by a NATS server of the team's own: each has a credentials file, and
// keeps what it has read in the roster (HUB-01).
func OnExternal(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	return onNATS(t, func(pc hubtest.PC, opts *hub.Options) {
		login, err := externalnats.Access{Creds: pc.Seed}.Options()
		if err != nil {
			t.Fatal(err)
		}
		opts.Login, opts.Roster = login, filepath.Join(t.TempDir(), "roster.json")
	}, can)
}

// Sealed joins them by a team's hub, which cannot read what they say.
func Sealed(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	return onNATS(t, func(_ hubtest.PC, opts *hub.Options) { opts.Seal = func() bool { return true } }, can)
}

// Keyless joins them by a team's hub: both seal, and neither has a key to seal to.
func Keyless(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	return onNATS(t, func(_ hubtest.PC, opts *hub.Options) { opts.Seal, opts.Open = func() bool { return true }, nil }, can)
}

func onNATS(t *testing.T, change func(hubtest.PC, *hub.Options), can []string) (laptop, desk *End) {
	t.Helper()
	n := hubtest.Start(t)
	a, b := newMember(t, n, "laptop", change, can), newMember(t, n, "desk", change, can)
	await := func(what string, up bool) {
		for _, m := range []*member{a, b} {
			for m.isUp() != up {
				next(t, what, m.changed)
			}
		}
	}
	await("the connection", true)
	var once sync.Once
	cut := func() {
		once.Do(func() {
			n.Stop()
			await("the end of the connection", false)
		})
	}
	a.cut, b.cut = cut, cut
	return &a.End, &b.End
}

// member is one PC of a team.
type member struct {
	End
	changed lifecycle.Signal // look again
}

func newMember(t *testing.T, n *hubtest.NATS, name string, change func(hubtest.PC, *hub.Options), can []string) *member {
	t.Helper()
	pc := n.Enrol(name)
	m := &member{changed: lifecycle.NewSignal()}
	opts := hub.Options{
		Team: hubtest.Team, Self: pc.ID, Hub: n.ID, URLs: []string{n.URL()}, Login: pc.Login, Sign: pc.Sign, Numbers: pc.Numbers,
		Word:   func() hub.Announcement { return hub.Announcement{Release: "1.0", Capabilities: can} },
		Handle: m.handle, Open: pc.Open,
		Changed: func(remote.PC) {
			m.changed.Notify()
		},
		Now: now, Log: logOf(t),
	}
	change(pc, &opts)
	h, err := hub.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	m.Transport, m.Self = h, remote.PC{ID: pc.ID, Name: name}
	return m
}

func (m *member) isUp() bool {
	status := m.Status()
	return len(status) == 1 && status[0].Up
}

// logOf is a log that is shown where the test fails.
func logOf(t *testing.T) *slog.Logger {
	log := &testLog{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.text())
		}
	})
	return slog.New(slog.NewTextHandler(log, nil))
}

// testLog is written to from anywhere, also when the test is over.
type testLog struct {
	mu     sync.Mutex
	buffer strings.Builder
}

func (k *testLog) Write(line []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buffer.Write(line)
}

func (k *testLog) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buffer.String()
}

// patience bounds every wait; it is no measure of speed.
const patience = testkit.Patience

func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case came := <-from:
		return came
	case <-time.After(patience):
		t.Fatalf("waited for %s, and nothing came", what)
		panic("unreachable")
	}
}

// pc is one PC of a pair link.
type pc struct {
	End
	identity link.Identity
	book     *link.PairList
	links    *link.Links
	off      atomic.Bool
	changed  lifecycle.Signal // look again
}

func newPC(t *testing.T, name string, can []string) *pc {
	t.Helper()
	folder := t.TempDir()
	p := &pc{changed: lifecycle.NewSignal()}
	var err error
	if p.identity, err = link.OpenIdentity(folder); err != nil {
		t.Fatal(err)
	}
	if p.book, err = link.OpenPairList(folder, now); err != nil {
		t.Fatal(err)
	}
	p.links = link.NewLinks(link.Options{
		Identity: p.identity, Pairs: p.book, Enabled: func() bool { return !p.off.Load() },
		Hello: func() link.Hello {
			return link.Hello{Protocol: link.Protocol, Name: name, Release: "1.0", Capabilities: can}
		},
		Handle: p.handle,
		Changed: func(remote.PC) {
			p.changed.Notify()
		},
		Now: now, Log: logOf(t),
	})
	t.Cleanup(p.links.Close)
	p.Transport, p.Self = p.links, remote.PC{ID: p.identity.ID, Name: name}
	return p
}

func (p *pc) isUp() bool {
	status := p.links.Status()
	return len(status) == 1 && status[0].Up
}

// InMemory joins them within the process.
func InMemory(t *testing.T, can ...string) (laptop, desk *End) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	call := func(name string) (*End, *memory) {
		m := &memory{life: ctx, can: can, in: make(chan remote.Frame, 64), bulk: make(chan remote.Frame, 2)}
		return &End{Transport: m, Self: remote.PC{ID: "id-of-" + name, Name: name}, cut: cancel}, m
	}
	laptop, a := call("laptop")
	desk, b := call("desk")
	a.other, a.far, b.other, b.far = desk.Self, b, laptop.Self, a
	var tasks sync.WaitGroup
	tasks.Go(func() { a.read(laptop) })
	tasks.Go(func() { b.read(desk) })
	t.Cleanup(func() {
		cancel()
		tasks.Wait()
	})
	return laptop, desk
}

// memory is one PC's end of a connection within the process.
type memory struct {
	life  context.Context //nolint:containedctx // of the connection
	other remote.PC
	can   []string
	far   *memory
	in    chan remote.Frame
	bulk  chan remote.Frame // read when in is empty
}

func (m *memory) read(end *End) {
	for {
		select {
		case frame := <-m.in:
			end.handle(m.other, frame)
			continue
		default:
		}
		select {
		case frame := <-m.in:
			end.handle(m.other, frame)
		case frame := <-m.bulk:
			end.handle(m.other, frame)
		case <-m.life.Done():
			return
		}
	}
}

// Send is pairing.Transport's. It fails as that method does.
func (m *memory) Send(ctx context.Context, id string, frame remote.Frame) error {
	return m.send(ctx, id, frame, m.far.in)
}

// SendBulk is pairing.Transport's. It fails as that method does.
func (m *memory) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	return m.send(ctx, id, frame, m.far.bulk)
}

func (m *memory) send(ctx context.Context, id string, frame remote.Frame, queue chan<- remote.Frame) error {
	if _, err := m.Of(id); err != nil {
		return err
	}
	if len(frame.Payload)+len(frame.Body) > remote.MaxFrameBytes {
		return bridge.Errorf(bridge.TooLarge, "the frame is too large")
	}
	if m.life.Err() != nil {
		return errDown
	}
	select {
	case queue <- frame:
		return nil
	case <-m.life.Done():
		return errDown
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errDown = bridge.Errorf(bridge.Unavailable, "there is no connection")

// Of is pairing.Transport's. It fails with Unauthorized for any PC except the other one.
func (m *memory) Of(id string) (remote.Status, error) {
	if id != m.other.ID {
		return remote.Status{}, bridge.Errorf(bridge.Unauthorized, "that PC is not known")
	}
	return m.Status()[0], nil
}

// Status is pairing.Transport's.
func (m *memory) Status() []remote.Status {
	status := remote.Status{PC: remote.PC{ID: m.other.ID, Name: m.other.Name}, Up: m.life.Err() == nil}
	if status.Up {
		status.Release, status.Capabilities = "1.0", m.can
	}
	return []remote.Status{status}
}
