// Package hub is the second way between PCs (RMT-24, rows HUB): those of a team meet on
// a NATS server, under the names of hub/subject. It carries the same frames as a pair
// link does and knows none of their meanings. Who said something is told by the subject
// and by the signature over it, and only PCs that the hub's own signed roster names are
// heard; what they may do here is decided above, by this PC's owner's policy.
//
// Frames go through NATS itself, which keeps nothing: at once or not at all. What may
// wait for a PC that is away can lie in the engine's stream until that PC has stored it
// (Inbox, Options.Stored); whatever the engine does not take waits in this PC's store.
package hub

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/lifecycle"
)

// Options say what a PC brings to its team. All are required but Seal, Open, Roster, Stored and Pace.
type Options struct {
	Team string
	Self string // this PC's identity
	Hub  string // the identity that signs the roster
	URLs []string
	// Login is how this PC shows NATS who it is, and knows that it is the right one.
	Login []nats.Option
	// Sign signs with the key whose SHA-256 is Self.
	Sign func(message []byte) (key, signature []byte)
	// Seal says whether this PC seals what it says to one other PC; nil never does.
	Seal func() bool
	// Open opens what was sealed to this PC under a subject; nil opens nothing, and others
	// know that.
	Open func(subject string, sealed []byte) ([]byte, error)
	// Numbers is the file in which it keeps which numbers it may have given to what it said.
	Numbers string
	// Roster is the file in which it keeps the newest of what the roster said of each PC:
	// an older word counts for nothing then, whatever the server shows. "" keeps nothing,
	// where the server itself has the roster's key.
	Roster string
	// Word is what this PC says of itself now.
	Word func() Word
	// Handle takes what another PC of the team said, frame after frame: the next one of
	// that PC waits for it.
	Handle func(remote.PC, remote.Frame)
	// Stored takes what lay in the hub for this PC, in the order of whoever stored it;
	// at is when that was, by this PC's clock. It is taken out of the hub when Stored
	// returns, and asked again where the error is a passing one (bridge.Storage,
	// Unavailable, Busy, Internal). It may come more than once. nil leaves all there.
	Stored func(ctx context.Context, from remote.PC, frame remote.Frame, at time.Time) error
	// Changed is told that something about a PC is different now, or with nobody that
	// the way to all of them is.
	Changed func(remote.PC)
	Now     func() time.Time
	Log     *slog.Logger
	Pace    Pace
}

// Word is what a PC says of itself to its team.
type Word struct {
	Release      string
	Capabilities []string
}

// Pace is how often a PC looks after its way to the hub.
type Pace struct {
	Presence     time.Duration // how often it says that it is there, in a small team
	Life         time.Duration // how long such a word counts
	Silence      time.Duration // for so long a node may not be heard of at all
	Ping         time.Duration // two of them unanswered end the connection
	Retry, Rarer time.Duration // the first pause between two attempts, and the longest
	Answer       time.Duration // how long NATS is waited for
}

var usualPace = Pace{
	Presence: subject.PresenceEvery, Life: subject.PresenceLife, Silence: 4 * time.Second, Ping: 15 * time.Second,
	Retry: time.Second, Rarer: time.Minute, Answer: 10 * time.Second,
}

// Hub is this PC's place in its team.
type Hub struct {
	Inbox *Inbox // what lies there for PCs that are away

	opts    Options
	session string // of this process: what was said to an earlier one is not for it
	conn    *nats.Conn
	greet   lifecycle.Signal // the connection is new
	outed   lifecycle.Signal // this PC is in the team no more
	queued  budget           // of frames that wait to be handled, of all PCs

	speech chan struct{} // capacity 1: who holds its token says something
	number *numbers      // of who holds the token
	bulk   chan struct{} // capacity 1: one large thing at a time

	entering sync.Mutex // who enters what the roster says; nothing else is held before it
	kept     kept       // guarded by entering

	decided atomic.Uint64 // counts what was heard of new decisions
	lacks   atomic.Bool   // the roster is to be read once more
	mute    atomic.Bool   // something else stands where this PC's word was
	left    atomic.Bool   // this PC has said that it leaves the team
	unread  uint64        // the roster's first sequence that was not read on this connection; of the goroutine that does
	again   time.Time     // when it says next that it is there; of the goroutine that does
	// told says that the hub tells who is there, by presences; of the same goroutine, too.
	told      bool
	presences *nats.Subscription

	tasks  *lifecycle.Tasks
	silent chan struct{} // closed when it says no more by itself that it is there

	mu      sync.Mutex // guards below
	state   State
	ahead   time.Duration // of this PC's clock before the engine's
	removed bool
	pcs     map[string]*member // by identity
	names   map[string]*member
	hurried time.Time
	drops   map[dropKey]*Drop
	slow    map[*nats.Subscription]time.Time // when more came by it than the connection holds
}

// State is how it stands with the way to the hub.
type State struct {
	Up     bool
	Since  time.Time // when it came up; zero where it is down
	Server string    // that it talks to
	Failed string    // why it is down
}

// Open begins to call the hub, and goes on until Close.
func Open(opts Options) (_ *Hub, err error) {
	if opts.Pace == (Pace{}) {
		opts.Pace = usualPace
	}
	h := &Hub{
		opts: opts, session: newSession(), greet: lifecycle.NewSignal(), outed: lifecycle.NewSignal(), silent: make(chan struct{}), speech: make(chan struct{}, 1), bulk: make(chan struct{}, 1), pcs: map[string]*member{},
		queued: budget{left: maxQueuedBytes}, number: openNumbers(opts.Numbers, opts.Log),
	}
	h.state.Failed = "it was not reached yet"
	h.Inbox = newInbox(h)
	h.tasks = lifecycle.NewTasks(context.Background())
	h.drops, h.slow = map[dropKey]*Drop{}, map[*nats.Subscription]time.Time{}
	if h.kept, err = openKept(opts.Roster, opts.Team, opts.Hub); err != nil {
		h.tasks.Cancel()
		return nil, err
	}
	recall(h)
	if err := h.connect(); err != nil {
		h.tasks.Cancel()
		return nil, bridge.WithCause(bridge.Invalid, err, "the team's hub cannot be called: "+err.Error())
	}
	h.tasks.Go(func() {
		defer close(h.silent)
		h.run()
	})
	if opts.Stored != nil {
		h.tasks.Go(h.Inbox.collect)
	}
	return h, nil
}

const sessionDigits = 32

func newSession() string {
	var random [sessionDigits / 2]byte
	_, _ = cryptorand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// connect sets up the connection; it comes up by itself, now or later.
func (h *Hub) connect() error {
	options := append([]nats.Option{
		nats.Name("bridge"), nats.CustomInboxPrefix(subject.InboxPrefix(h.opts.Self)), nats.NoEcho(),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // what is said while it is away is said to nobody, and its speaker hears that
		nats.CustomReconnectDelay(h.pause), nats.PingInterval(h.opts.Pace.Ping), nats.MaxPingsOutstanding(2),
		nats.Dialer(h.opts.Pace.dialer()), nats.Timeout(h.opts.Pace.Answer), nats.FlusherTimeout(h.opts.Pace.Answer),
		nats.ConnectHandler(func(*nats.Conn) { h.greet.Notify() }),
		nats.ReconnectHandler(func(*nats.Conn) { h.greet.Notify() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { h.down(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { h.down(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			h.opts.Log.Warn("the team's hub says", "err", err, "about", subjectOf(sub))
			h.overrun(sub, err)
			if errors.Is(err, nats.ErrAuthorization) { // a login that is refused is told in no other way
				h.down(refused(h))
				h.outed.Notify()
			}
		}),
	}, h.opts.Login...)
	if len(h.opts.URLs) > 1 { // these are all its nodes: what they tell of may be addresses that nobody reaches from here
		options = append(options, nats.IgnoreDiscoveredServers())
	}
	var err error
	if h.conn, err = nats.Connect(strings.Join(h.opts.URLs, ","), options...); err != nil {
		return err
	}
	return h.subscribe()
}

// refused is why this PC is not let in, as far as it can know.
func refused(h *Hub) error {
	if h.opts.Roster != "" {
		return errCreds
	}
	return errRefused
}

var errCreds = bridge.Errorf(bridge.Unauthorized, "it refuses this PC's credentials, which its administrator has taken back, or which have expired")

// errRefused is all that a PC hears whom the hub does not let in: which of both it is, the
// hub's log says.
var errRefused = bridge.Errorf(bridge.Unauthorized, "it refuses this PC, which was removed from the team or is shut out for a minute")

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// pause grows with each attempt in vain.
func (h *Hub) pause(attempts int) time.Duration {
	pause := h.opts.Pace.Rarer
	if attempts < 16 {
		pause = min(h.opts.Pace.Retry<<max(attempts-1, 0), pause)
	}
	return pause/2 + rand.N(pause) //nolint:gosec // so that a team's PCs do not keep step
}

// Close says goodbye, as its last word, and ends the connection.
func (h *Hub) Close() {
	h.tasks.Cancel()
	<-h.silent
	if h.conn.IsConnected() && !h.left.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = h.say(ctx, h.presenceKey(), presence{Session: h.session, Gone: true}.encode(), publish)
		_ = h.conn.FlushWithContext(ctx)
		cancel()
	}
	h.conn.Close()
	h.tasks.Wait()
}

// State is how it stands now.
func (h *Hub) State() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// Removed reports whether the hub has said that this PC belongs to the team no more.
func (h *Hub) Removed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removed
}

// down notes that there is no way to anybody.
func (h *Hub) down(err error) {
	h.mu.Lock()
	before := h.state
	h.state = State{Failed: before.Failed}
	if err != nil && !errors.Is(err, io.EOF) {
		h.state.Failed = err.Error()
	} else if before.Up {
		h.state.Failed = "the connection ended"
	}
	now, changed := h.state, before != h.state
	for _, m := range h.pcs {
		m.leave()
	}
	h.mu.Unlock()
	if changed && !h.tasks.HasEnded() {
		if before.Up {
			h.opts.Log.Info("the way to the team's hub has ended", "err", now.Failed)
		}
		h.opts.Changed(remote.PC{})
	}
}

// run keeps this PC present while there is a way, and others as long as they are.
func (h *Hub) run() {
	tick, again := time.NewTicker(h.opts.Pace.Presence), time.NewTimer(h.opts.Pace.Presence)
	defer tick.Stop()
	defer again.Stop()
	for failed := 0; ; {
		var err error
		select {
		case <-h.greet:
			err = h.arrive()
		case <-again.C:
			if !h.State().Up && h.conn.IsConnected() {
				err = h.arrive() // what failed before
			}
		case <-tick.C:
			h.expire()
			if h.State().Up && h.conn.IsConnected() {
				err = stay(h)
			}
		case <-h.tasks.Done():
			return
		}
		switch {
		case h.tasks.HasEnded():
		case err != nil:
			h.opts.Log.Warn("the team's hub does not take this PC's word", "err", err)
			h.down(err)
			failed++
			elsewhere(h, failed)
			again.Reset(h.pause(failed))
		case h.State().Up:
			failed = 0
		}
	}
}

// elsewhere leaves a node that is reached and yet does not take this PC's word: it may have
// lost the others.
func elsewhere(h *Hub, failed int) {
	if failed%2 == 0 && len(h.opts.URLs) > 1 && h.conn.IsConnected() {
		_ = h.conn.ForceReconnect() // or it has ended
	}
}

// stay says again that this PC is there, when it is time to. Where the roster may lack
// something, it is read on: an entry that the engine was about to store when this PC
// arrived came neither with what was stored nor behind it.
func stay(h *Hub) error {
	if h.mute.Load() || !h.opts.Now().Before(h.again) {
		if err := h.appear(h.tasks.Context()); err != nil {
			return err
		}
	}
	if !h.lacks.Swap(false) {
		return nil
	}
	return learnMore(h)
}

// arrive takes this PC's place on a new connection: it says that it is there, and learns
// who is.
func (h *Hub) arrive() error {
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Pace.Answer)
	defer cancel()
	h.mu.Lock()
	for _, m := range h.pcs {
		m.leave() // what was heard of them may have changed meanwhile
	}
	h.mu.Unlock()
	if err := learn(ctx, h); err != nil {
		return fmt.Errorf("it does not say who is in the team: %w", err)
	}
	if err := h.appear(ctx); err != nil {
		return fmt.Errorf("it does not store that this PC is there: %w", err)
	}
	if !h.told {
		if err := h.readPresence(ctx); err != nil {
			return fmt.Errorf("it does not say who is there: %w", err)
		}
		h.lacks.Store(true)
	}
	if !h.conn.IsConnected() {
		return nil // and it comes again
	}
	h.mu.Lock()
	h.state = State{Up: true, Since: h.opts.Now(), Server: h.conn.ConnectedServerName()}
	for _, m := range h.pcs {
		m.rise(h.state.Since)
	}
	h.mu.Unlock()
	h.decided.Add(1)
	h.Inbox.open.Notify()
	h.opts.Log.Info("the way to the team's hub is up", "server", h.conn.ConnectedServerName())
	h.opts.Changed(remote.PC{})
	return nil
}
