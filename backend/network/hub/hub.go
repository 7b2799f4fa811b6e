// Package hub is the second way between PCs (RMT-24, rows HUB): those of a team meet on
// a NATS server, under the names of hub/subject. It carries the same frames as a pair
// link does and knows none of their meanings. The subject and the signature name the sender,
// and frames of PCs outside of the signed roster are dropped. The policy of this PC's owner,
// in the packages above, decides what a PC may do here.
//
// Frames go through core NATS, which stores nothing: a frame arrives at once or not at all.
// Messages for a PC that is away can wait in a stream until that PC has stored them (Inbox,
// Options.Stored). Messages that the server does not accept wait in this PC's store.
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

// Options say what a PC brings to its team. All are required but Seal, Open, Roster, Stored and Timing.
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
	// Word returns what this PC announces of itself.
	Word func() Announcement
	// Handle takes what another PC of the team said, frame after frame: the next one of
	// that PC waits for it.
	Handle func(remote.PC, remote.Frame)
	// Stored takes what lay in the hub for this PC, in the order of whoever stored it;
	// at is when that was, by this PC's clock. It is taken out of the hub when Stored
	// returns, and asked again where the error is a passing one (bridge.Storage,
	// Unavailable, Busy, Internal). It may come more than once. nil leaves all there.
	Stored func(ctx context.Context, from remote.PC, frame remote.Frame, at time.Time) error
	// Changed is called after a change of a PC, or with an empty PC after a change of the
	// connection to all of them.
	Changed func(remote.PC)
	Now     func() time.Time
	Log     *slog.Logger
	Timing  Timing
}

// Announcement is what a PC says of itself to its team.
type Announcement struct {
	Release      string
	Capabilities []string
}

// Timing are the intervals and timeouts of the connection to the hub.
type Timing struct {
	Presence          time.Duration // between two announcements of presence, in a small team
	TTL               time.Duration // an announcement expires after it
	PeerTimeout       time.Duration // a node that sends nothing for so long is gone
	Ping              time.Duration // two of them unanswered end the connection
	Retry, MaxBackoff time.Duration // the first pause between two attempts, and the longest
	Answer            time.Duration // timeout of a request to NATS
}

var usualTiming = Timing{
	Presence: subject.PresenceEvery, TTL: subject.PresenceLife, PeerTimeout: 4 * time.Second, Ping: 15 * time.Second,
	Retry: time.Second, MaxBackoff: time.Minute, Answer: 10 * time.Second,
}

// Hub is this PC's membership in its team: its connection, the roster and who is present.
type Hub struct {
	Inbox *Inbox // what lies there for PCs that are away

	opts      Options
	session   string // of this process; frames for an earlier process are dropped
	conn      *nats.Conn
	connected lifecycle.Signal // a connection was established
	evicted   lifecycle.Signal // this PC was removed from the team
	queued    budget           // memory for frames that wait to be handled, shared by all PCs

	publishToken chan struct{} // capacity 1: its holder may sign and publish
	numbers      *numbers      // guarded by publishToken
	bulkToken    chan struct{} // capacity 1: one large frame at a time

	rosterMu   sync.Mutex // held while roster entries are applied; taken before mu
	rosterFile rosterFile // guarded by rosterMu

	decided             atomic.Uint64 // grows when new decisions are announced
	rosterStale         atomic.Bool   // the roster must be read again
	presenceOverwritten atomic.Bool   // the stored announcement is not this PC's own
	leaving             atomic.Bool   // this PC has announced that it leaves the team
	nextRosterSequence  uint64        // first sequence of the roster that was not read on this connection; used by run alone
	nextAnnouncement    time.Time     // used by run alone
	// hasSnapshot is set if the hub sends presence snapshots, by presences; used by run alone.
	hasSnapshot bool
	presences   *nats.Subscription

	tasks         *lifecycle.Tasks
	announcerDone chan struct{} // closed when run has ended

	mu        sync.Mutex // guards below
	state     State
	clockSkew time.Duration // this PC's clock minus the engine's
	removed   bool
	pcs       map[string]*member // by identity
	names     map[string]*member
	lastHurry time.Time
	drops     map[dropKey]*Drop
	slow      map[*nats.Subscription]time.Time // subscriptions that overflowed, and when
}

// State is the state of the connection to the hub.
type State struct {
	Up     bool
	Since  time.Time // when it was established; zero while it is down
	Server string    // the connected node
	Failed string    // why it is down
}

// Open connects to the hub in the background until Close. It fails with Invalid if the options
// cannot be used, and with Storage if the roster file cannot be read.
func Open(opts Options) (_ *Hub, err error) {
	if opts.Timing == (Timing{}) {
		opts.Timing = usualTiming
	}
	h := &Hub{
		opts: opts, session: newSession(), connected: lifecycle.NewSignal(), evicted: lifecycle.NewSignal(), announcerDone: make(chan struct{}), publishToken: make(chan struct{}, 1), bulkToken: make(chan struct{}, 1), pcs: map[string]*member{},
		queued: budget{remaining: maxQueuedBytes}, numbers: openNumbers(opts.Numbers, opts.Log),
	}
	h.state.Failed = "it was not reached yet"
	h.Inbox = newInbox(h)
	h.tasks = lifecycle.NewTasks(context.Background())
	h.drops, h.slow = map[dropKey]*Drop{}, map[*nats.Subscription]time.Time{}
	if h.rosterFile, err = openRosterFile(opts.Roster, opts.Team, opts.Hub); err != nil {
		h.tasks.Cancel()
		return nil, err
	}
	restoreRoster(h)
	if err := h.connect(); err != nil {
		h.tasks.Cancel()
		return nil, bridge.WithCause(bridge.Invalid, err, "the team's hub cannot be called: "+err.Error())
	}
	h.tasks.Go(func() {
		defer close(h.announcerDone)
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

// connect creates the client. NATS connects in the background and after each failure.
func (h *Hub) connect() error {
	options := append([]nats.Option{
		nats.Name("bridge"), nats.CustomInboxPrefix(subject.InboxPrefix(h.opts.Self)), nats.NoEcho(),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // publishing without a connection fails at once
		nats.CustomReconnectDelay(h.pause), nats.PingInterval(h.opts.Timing.Ping), nats.MaxPingsOutstanding(2),
		nats.Dialer(h.opts.Timing.dialer()), nats.Timeout(h.opts.Timing.Answer), nats.FlusherTimeout(h.opts.Timing.Answer),
		nats.ConnectHandler(func(*nats.Conn) { h.connected.Notify() }),
		nats.ReconnectHandler(func(*nats.Conn) { h.connected.Notify() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { h.onDisconnected(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { h.onDisconnected(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			h.opts.Log.Warn("the team's hub says", "err", err, "about", subjectOf(sub))
			h.overrun(sub, err)
			if errors.Is(err, nats.ErrAuthorization) { // a refused login is reported in no other way
				h.onDisconnected(refused(h))
				h.evicted.Notify()
			}
		}),
	}, h.opts.Login...)
	if len(h.opts.URLs) > 1 { // these are all nodes: addresses that they advertise may be unreachable from here
		options = append(options, nats.IgnoreDiscoveredServers())
	}
	var err error
	if h.conn, err = nats.Connect(strings.Join(h.opts.URLs, ","), options...); err != nil {
		return err
	}
	return h.subscribe()
}

// refused returns why the hub refuses this PC, as far as this PC can know.
func refused(h *Hub) error {
	if h.opts.Roster != "" {
		return errCreds
	}
	return errRefused
}

var errCreds = bridge.Errorf(bridge.Unauthorized, "it refuses this PC's credentials, which its administrator has taken back, or which have expired")

// errRefused is the only answer to a refused PC. The log of the hub has the reason.
var errRefused = bridge.Errorf(bridge.Unauthorized, "it refuses this PC, which was removed from the team or is shut out for a minute")

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// pause returns the delay before the next attempt. It grows with each failure, up to MaxBackoff.
func (h *Hub) pause(attempts int) time.Duration {
	pause := h.opts.Timing.MaxBackoff
	if attempts < 16 {
		pause = min(h.opts.Timing.Retry<<max(attempts-1, 0), pause)
	}
	return pause/2 + rand.N(pause) //nolint:gosec // so that the PCs of a team spread out
}

// Close announces that this PC goes, and ends the connection.
func (h *Hub) Close() {
	h.tasks.Cancel()
	<-h.announcerDone
	if h.conn.IsConnected() && !h.leaving.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = h.publish(ctx, h.presenceKey(), presence{Session: h.session, Gone: true}.encode(), publishOnly)
		_ = h.conn.FlushWithContext(ctx)
		cancel()
	}
	h.conn.Close()
	h.tasks.Wait()
}

// State returns the present state of the connection.
func (h *Hub) State() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// Removed reports whether the roster says that this PC was removed from the team.
func (h *Hub) Removed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removed
}

// onDisconnected marks all PCs as unreachable.
func (h *Hub) onDisconnected(err error) {
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
		m.forgetPresence()
	}
	h.mu.Unlock()
	if changed && !h.tasks.HasEnded() {
		if before.Up {
			h.opts.Log.Info("the way to the team's hub has ended", "err", now.Failed)
		}
		h.opts.Changed(remote.PC{})
	}
}

// run announces this PC while it is connected, and expires the announcements of others.
func (h *Hub) run() {
	tick, retry := time.NewTicker(h.opts.Timing.Presence), time.NewTimer(h.opts.Timing.Presence)
	defer tick.Stop()
	defer retry.Stop()
	for failed := 0; ; {
		var err error
		select {
		case <-h.connected:
			err = h.onConnected()
		case <-retry.C:
			if !h.State().Up && h.conn.IsConnected() {
				err = h.onConnected() // retry
			}
		case <-tick.C:
			h.expirePresences()
			if h.State().Up && h.conn.IsConnected() {
				err = refreshPresence(h)
			}
		case <-h.tasks.Done():
			return
		}
		switch {
		case h.tasks.HasEnded():
		case err != nil:
			h.opts.Log.Warn("the team's hub does not take this PC's word", "err", err)
			h.onDisconnected(err)
			failed++
			tryOtherNode(h, failed)
			retry.Reset(h.pause(failed))
		case h.State().Up:
			failed = 0
		}
	}
}

// tryOtherNode reconnects after every second failure on a connected node: it may have lost the
// other nodes.
func tryOtherNode(h *Hub, failed int) {
	if failed%2 == 0 && len(h.opts.URLs) > 1 && h.conn.IsConnected() {
		_ = h.conn.ForceReconnect() // or it has ended
	}
}

// refreshPresence announces this PC again when due. It reads the roster again if that may be
// stale: an entry that the engine was about to store when this PC connected was neither
// among the stored ones nor published after them.
func refreshPresence(h *Hub) error {
	if h.presenceOverwritten.Load() || !h.opts.Now().Before(h.nextAnnouncement) {
		if err := h.announce(h.tasks.Context()); err != nil {
			return err
		}
	}
	if !h.rosterStale.Swap(false) {
		return nil
	}
	return reloadTeam(h)
}

// onConnected loads roster and presence on a new connection, and announces this PC.
func (h *Hub) onConnected() error {
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Timing.Answer)
	defer cancel()
	h.mu.Lock()
	for _, m := range h.pcs {
		m.forgetPresence() // it may have changed meanwhile
	}
	h.mu.Unlock()
	if err := loadTeam(ctx, h); err != nil {
		return fmt.Errorf("it does not say who is in the team: %w", err)
	}
	if err := h.announce(ctx); err != nil {
		return fmt.Errorf("it does not store that this PC is there: %w", err)
	}
	if !h.hasSnapshot {
		if err := h.readPresence(ctx); err != nil {
			return fmt.Errorf("it does not say who is there: %w", err)
		}
		h.rosterStale.Store(true)
	}
	if !h.conn.IsConnected() {
		return nil // the next connection repeats this
	}
	h.mu.Lock()
	h.state = State{Up: true, Since: h.opts.Now(), Server: h.conn.ConnectedServerName()}
	for _, m := range h.pcs {
		m.markReachable(h.state.Since)
	}
	h.mu.Unlock()
	h.decided.Add(1)
	h.Inbox.ready.Notify()
	h.opts.Log.Info("the way to the team's hub is up", "server", h.conn.ConnectedServerName())
	h.opts.Changed(remote.PC{})
	return nil
}
