package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
)

// Options configures [Links]. All fields except Timing are required.
type Options struct {
	Identity Identity
	Pairs    *PairList
	// Enabled reports whether the owner allows links now.
	Enabled func() bool
	// Hello returns this PC's present hello.
	Hello func() Hello
	// Handle processes the frames of a link in order, with the verified PC: the next
	// frame waits for it. It must not wait for an answer over the same link.
	Handle func(remote.PC, remote.Frame)
	// Changed is called after a link was established or ended.
	Changed func(remote.PC)
	Now     func() time.Time
	Log     *slog.Logger
	Timing  Timing
}

// Timing sets the intervals and timeouts of links.
type Timing struct {
	Ping, Dead time.Duration // a frame is sent each Ping; a link ends after Dead without one
	// Doubt is the timeout of a link that the other side may not know.
	Doubt           time.Duration
	Retry, MaxRetry time.Duration // the first and the longest pause between attempts
}

var usualTiming = Timing{Ping: 15 * time.Second, Dead: 45 * time.Second, Doubt: 3 * time.Second, Retry: time.Second, MaxRetry: time.Minute}

// Links keeps a link to each paired PC if possible: at most one per PC, whichever side
// opened it.
type Links struct {
	opts  Options
	tasks *lifecycle.Tasks

	mu    sync.Mutex
	up    map[string]*conn
	dials map[string]*dialing
}

// dialing is the loop that dials a PC whose address is known.
type dialing struct {
	stop context.CancelFunc
	now  lifecycle.Signal // do not wait any longer
	// failed is the last attempt's error; guarded by Links.mu.
	failed error
}

// NewLinks returns the links; Refresh starts to dial.
func NewLinks(opts Options) *Links {
	if opts.Timing == (Timing{}) {
		opts.Timing = usualTiming
	}
	l := &Links{opts: opts, up: map[string]*conn{}, dials: map[string]*dialing{}}
	l.tasks = lifecycle.NewTasks(context.Background())
	return l
}

// Close ends all links.
func (l *Links) Close() {
	l.tasks.Cancel()
	l.mu.Lock()
	for _, c := range l.up {
		c.close(errEnding)
	}
	l.mu.Unlock()
	l.tasks.Wait()
}

var errEnding = errors.New("this Bridge is ending")

// Refresh applies the book and the settings. It dials PCs with an address. It ends links
// of PCs that left the book, or all while links are off.
func (l *Links) Refresh() {
	var pairs []Pair
	if l.opts.Enabled() {
		pairs = l.opts.Pairs.Pairs()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, c := range l.up {
		if !slices.ContainsFunc(pairs, func(p Pair) bool { return p.ID == id }) {
			c.close(bridge.Errorf(bridge.Denied, "%s is not paired any more, or links are off", c.peer.Name))
		}
	}
	for id, d := range l.dials {
		if !slices.ContainsFunc(pairs, func(p Pair) bool { return p.ID == id && p.Address != "" }) {
			d.stop()
			delete(l.dials, id)
		}
	}
	for _, pair := range pairs {
		if pair.Address == "" || l.dials[pair.ID] != nil || l.tasks.HasEnded() {
			continue
		}
		ctx, stop := context.WithCancel(l.tasks.Context())
		d := &dialing{stop: stop, now: lifecycle.NewSignal()}
		l.dials[pair.ID] = d
		l.tasks.Go(func() { l.call(ctx, pair.ID, d) })
	}
}

// call dials one PC while there is no link to it. A link that ends soon counts as a
// failure: the pause grows.
func (l *Links) call(ctx context.Context, id string, d *dialing) {
	pause := l.opts.Timing.Retry
	for {
		err := l.dial(ctx, id)
		l.mu.Lock()
		d.failed = err
		l.mu.Unlock()
		if c := l.link(id); c != nil {
			select {
			case <-c.done:
			case <-ctx.Done():
				return
			}
			if l.opts.Now().Sub(c.since) > l.opts.Timing.Dead {
				pause = l.opts.Timing.Retry
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // so that two PCs do not keep step
			pause = min(2*pause, l.opts.Timing.MaxRetry)
		case <-d.now:
			pause = l.opts.Timing.Retry
		case <-ctx.Done():
			return
		}
	}
}

func (l *Links) dial(ctx context.Context, id string) error {
	if l.link(id) != nil {
		return nil // the other side opened the link
	}
	pair, err := l.opts.Pairs.ByID(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: l.opts.Identity.config(linkProtocol, func(proved string) error {
		if proved != id {
			return bridge.Errorf(bridge.Unauthorized, "another PC answers at %s, the address of %s: unlink and pair again if it has a new key", pair.Address, pair.Name)
		}
		return nil
	})}
	raw, err := dialer.DialContext(ctx, "tcp", pair.Address)
	if err != nil {
		return err
	}
	return l.take(raw.(*tls.Conn), pair, true) //nolint:forcetypeassert,errcheck // tls dialed it
}

// Take serves an incoming, verified connection.
func (l *Links) Take(raw *tls.Conn, id string) {
	pair, err := l.opts.Pairs.ByID(id)
	if err == nil {
		err = l.take(raw, pair, false)
	}
	if err != nil {
		_ = raw.Close()
		l.opts.Log.Info("a link was not taken", "peer", Fingerprint(id), "err", err)
	}
}

// take greets the other side and serves the link, unless another link of the pair stays.
func (l *Links) take(raw *tls.Conn, pair Pair, dialed bool) error {
	c, err := greet(raw, pair, dialed, l.opts.Hello(), l.opts.Now())
	if err == nil && !l.keep(c) {
		err = errSecond
	}
	if err != nil {
		_ = raw.Close()
		if errors.Is(err, errSecond) {
			return nil // the other link serves
		}
		return err
	}
	l.learn(c)
	peer := remote.PC{ID: pair.ID, Name: pair.Name}
	l.opts.Log.Info("linked", "peer", pair.Name, "release", c.hello.Release)
	l.tasks.Go(func() {
		l.opts.Changed(peer)
		l.Refresh() // its address may be new
		err := c.serve(l.opts.Timing, func(frame remote.Frame) { l.opts.Handle(peer, frame) })
		l.mu.Lock()
		if l.up[pair.ID] == c {
			delete(l.up, pair.ID)
		}
		l.mu.Unlock()
		l.opts.Log.Info("the link has ended", "peer", pair.Name, "err", err)
		l.opts.Changed(peer)
	})
	return nil
}

// learn records what the link proves: that the other side has the pair too, and the
// address at which it can be dialled.
func (l *Links) learn(c *conn) {
	err := l.opts.Pairs.Update(c.peer.ID, func(p *Pair) {
		p.Confirmed = true
		if host, _, err := net.SplitHostPort(c.tls.RemoteAddr().String()); err == nil && p.Address == "" && c.hello.Port > 0 {
			p.Address = net.JoinHostPort(host, strconv.Itoa(c.hello.Port))
		}
	})
	if err != nil {
		l.opts.Log.Warn("what is new of a pair could not be recorded", "peer", c.peer.Name, "err", err)
	}
}

var errSecond = errors.New("there is a link already")

// keep decides between two links of one pair. The link that the PC with the smaller id
// opened stays, on both sides. If one side opened both, the newer one stays, because that
// side knows that the older one is gone.
func (l *Links) keep(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks.HasEnded() {
		return false
	}
	present := l.up[c.peer.ID]
	if present != nil && present.dialed != c.dialed && !l.isPreferred(c) {
		select {
		case <-present.done: // it has just ended
		default:
			present.doubt.Notify()
			return false
		}
	}
	if present != nil {
		present.close(errSecond)
	}
	l.up[c.peer.ID] = c
	return true
}

func (l *Links) isPreferred(c *conn) bool { return c.dialed == (l.opts.Identity.ID < c.peer.ID) }

func (l *Links) link(id string) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up[id]
}

// Send sends a frame to that PC, at once or not at all. It fails with Unavailable if
// there is no link. Only an answer shows that the frame arrived.
func (l *Links) Send(ctx context.Context, peerID string, frame remote.Frame) error {
	return l.send(ctx, peerID, frame, func(c *conn) chan outgoing { return c.commands })
}

// SendBulk is Send for low-priority frames. It fails as Send does.
func (l *Links) SendBulk(ctx context.Context, peerID string, frame remote.Frame) error {
	return l.send(ctx, peerID, frame, func(c *conn) chan outgoing { return c.bulk })
}

func (l *Links) send(ctx context.Context, peerID string, frame remote.Frame, queue func(*conn) chan outgoing) error {
	pair, err := l.opts.Pairs.ByID(peerID)
	if err != nil {
		return err
	}
	c := l.link(peerID)
	if c == nil {
		l.hurry(peerID)
		return errDown(pair.Name)
	}
	return c.send(ctx, frame, queue(c))
}

// hurry makes the dial loop of a PC retry at once, because a caller needs the link.
func (l *Links) hurry(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.dials[id]; d != nil {
		d.now.Notify()
	}
}

// Status returns the paired PCs, sorted by name.
func (l *Links) Status() []remote.Status {
	var list []remote.Status
	for _, pair := range l.opts.Pairs.Pairs() {
		list = append(list, l.status(pair))
	}
	slices.SortFunc(list, func(a, b remote.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (l *Links) status(pair Pair) remote.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := remote.Status{PC: remote.PC{ID: pair.ID, Name: pair.Name}}
	if c := l.up[pair.ID]; c != nil {
		s.Up, s.Since, s.Release, s.Capabilities = true, c.since, c.hello.Release, c.hello.Capabilities
		return s
	}
	if d := l.dials[pair.ID]; d != nil && d.failed != nil {
		s.Failed = d.failed.Error()
	}
	return s
}

// Of returns the state of that PC. It fails with Unauthorized if it is not paired.
func (l *Links) Of(peerID string) (remote.Status, error) {
	pair, err := l.opts.Pairs.ByID(peerID)
	if err != nil {
		return remote.Status{}, err
	}
	return l.status(pair), nil
}
