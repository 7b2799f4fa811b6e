// Package broker is the daemon's heart: one per home, elected by a lock that
// dies with its holder. It knows who is connected, stores every message before
// it acknowledges it, leases mail to hooks and tools until they say what became
// of it, and delivers decisions (rows MSG and DEC). The rules live in the
// packages session, mail and decision; what is durable lives in store.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/config"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
	"bridge/backend/store"
)

// Options says what a broker works with. All fields are required but CLI, Pace
// and HoldShared.
type Options struct {
	Home     config.Home
	Settings func() (config.Settings, error) // read anew at each use
	DB       *store.DB
	Now      func() time.Time
	Log      *slog.Logger
	Host     string        // who hosts it: serve, background, desktop, service
	Version  string        // of this build
	URL      func() string // dashboard address without key, "" when none is served
	Ticket   func() string // a one-time launch address, "" when none is served
	// Queue finds codex's queue command.
	Queue func() (agent.Queue, error)
	// CLI finds the program of a kind and its version; nil asks nobody.
	CLI func(ctx context.Context, kind bridge.AgentKind) (agent.Found, error)
	// HoldShared says that older programs are alive, so that the JSON stores they
	// share with this build stay as they are (VER-05).
	HoldShared bool
	Pace       Pace   // of wakes; tests are quicker
	Retire     func() // ends this process in good order; only a background broker is asked

	// step, when set, is told each named point of work that tests hold there, so
	// that what may happen at once happens in an order of theirs.
	step func(point)
}

// Pace is the rhythm of wakes.
type Pace = wake.Pace

// point is a moment in the broker's work that a test can hold.
type point string

func (b *Broker) at(p point) {
	if b.opts.step != nil {
		b.opts.step(p)
	}
}

// Broker serves one home.
type Broker struct {
	opts     Options
	journal  ipc.Journal
	prefs    *wake.Prefs
	started  time.Time
	revision atomic.Int64

	mu     sync.Mutex // guards below
	roster *session.Roster
	conns  map[*ipc.Conn]*link
	linked int           // connections so far
	boxes  mailbox.Boxes // by peer id, for live sessions
	// childCalls are the tool use ids of calls that a hook saw inside a native
	// child: the child must not take its parent's mail.
	childCalls map[string]bool
	watchers   map[chan struct{}]struct{}  // in-process revision watchers
	versions   map[bridge.AgentKind]string // of the agent CLIs on this PC, as far as they told

	// tasks are the broker's own goroutines: wakes and looks under way.
	tasks  sync.WaitGroup
	life   context.Context //nolint:containedctx // the broker's own life, for tasks
	cancel context.CancelFunc
}

// New prepares a broker: it loads the known sessions and imports the receipts
// that no broker heard.
func New(ctx context.Context, opts Options) (*Broker, error) {
	opts.Pace = opts.Pace.OrUsual()
	peers, err := opts.DB.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the known sessions: %w", err)
	}
	known := make([]session.Known, 0, len(peers))
	for _, p := range peers {
		known = append(known, session.Known{ID: p.ID, Name: p.Name, Kind: p.Agent, SessionID: p.SessionID})
	}
	b := &Broker{
		opts:       opts,
		journal:    ipc.Journal{Dir: opts.Home.ReadJournal()},
		started:    opts.Now(),
		roster:     session.NewRoster(known),
		conns:      map[*ipc.Conn]*link{},
		boxes:      mailbox.Boxes{},
		childCalls: map[string]bool{},
		watchers:   map[chan struct{}]struct{}{},
		versions:   map[bridge.AgentKind]string{},
	}
	if b.prefs, err = wake.OpenPrefs(config.Shared{Home: opts.Home, Now: opts.Now, Hold: opts.HoldShared}); err != nil {
		opts.Log.Warn("the sessions' auto-wake choices are not remembered", "err", err)
	}
	b.life, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.revision.Store(opts.Now().UnixMilli()) // grows over restarts too
	b.importReceipts(ctx)
	return b, nil
}

// Close ends what the broker does by itself. Its connections are the server's.
func (b *Broker) Close() {
	b.cancel()
	b.tasks.Wait()
}

// soon runs do by itself after a pause, unless the broker ends before.
func (b *Broker) soon(pause time.Duration, do func(context.Context)) {
	b.tasks.Go(func() {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			do(b.life)
		case <-b.life.Done():
		}
	})
}

// link is what the broker keeps of one connection.
type link struct {
	conn *ipc.Conn
	// identity is what Register said; nil before it and for roles without one.
	identity *api.Register
	sessions map[string]bool // peer ids of the sessions it is part of
	proven   bool            // a call through it told whose it is (see threads.go)
	watches  bool            // wants revision events
	leases   mailbox.Holder
	mod      wake.ModLink
	host     hostProcess
}

// Connected admits a connection (ipc.Handler).
func (b *Broker) Connected(conn *ipc.Conn) (ipc.Welcome, error) {
	if err := api.CheckRole(conn.Hello().Role); err != nil {
		return ipc.Welcome{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.linked++
	b.conns[conn] = &link{conn: conn, mod: wake.ModLink{Number: b.linked}, sessions: map[string]bool{}}
	return ipc.Welcome{Version: b.opts.Version, PID: ownPID(), URL: b.opts.URL()}, nil
}

// Disconnected forgets a connection: what it had on lease is offered again, and
// sessions that only it held leave the list (ipc.Handler).
func (b *Broker) Disconnected(conn *ipc.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.conns[conn]
	if l == nil {
		return
	}
	delete(b.conns, conn)
	l.leases.End()
	b.modLostLocked(l)
	for id := range l.sessions {
		b.handOnLocked(l, id)
		b.leaveUnlessHeldLocked(id)
	}
}

// Busy reports whether a connected session or plugin still needs this broker
// (MSG-01: a background broker leaves when nothing does).
func (b *Broker) Busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.conns {
		if role := l.conn.Hello().Role; role != api.RoleHook && role != api.RoleMod {
			return true
		}
	}
	return false
}

// Handle serves one request (ipc.Handler).
func (b *Broker) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	asked, ok := operations[op]
	if !ok {
		return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
	}
	if err := asked.CheckCaller(conn.Hello().Role); err != nil {
		return nil, err
	}
	b.mu.Lock()
	l := b.conns[conn]
	b.mu.Unlock()
	if l == nil {
		return nil, bridge.Errorf(bridge.Unavailable, "the connection has ended")
	}
	result, err := asked.serve(ctx, b, l, args)
	if err != nil && ctx.Err() != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "the caller has given up")
	}
	return result, b.explain(op, err)
}

// explain logs what people are not told: the cause of an internal error.
func (b *Broker) explain(op string, err error) error {
	var e *bridge.Error
	if err == nil || errors.As(err, &e) && e.Code != bridge.Internal {
		return err
	}
	b.opts.Log.Error("an operation failed", "op", op, "err", err)
	return err
}

// operation is one row of ipc/api's table and the method that serves it.
type operation struct {
	api.Row
	serve func(ctx context.Context, b *Broker, l *link, args json.RawMessage) (any, error)
}

// operations is what this broker serves, by name.
var operations = byName(
	serve(api.OpRegister, (*Broker).register),
	serve(api.OpLeave, (*Broker).leave),
	serve(api.OpHook, (*Broker).hook),
	serve(api.OpConfirm, (*Broker).confirm),
	serve(api.OpReturn, (*Broker).giveBack),
	serve(api.OpPeers, (*Broker).peers),
	serve(api.OpSend, (*Broker).send),
	serve(api.OpSent, (*Broker).sendStatus),
	serve(api.OpInbox, (*Broker).inbox),
	serve(api.OpWait, (*Broker).wait),
	serve(api.OpDecide, (*Broker).decide),
	serve(api.OpDecisions, (*Broker).decisions),
	serve(api.OpSearch, (*Broker).searchHistory),
	serve(api.OpAutoWake, (*Broker).autoWake),
	serve(api.OpStatus, (*Broker).status),
	serve(api.OpSubscribe, (*Broker).subscribe),
	serve(api.OpTicket, (*Broker).ticket),
	serve(api.OpRetire, (*Broker).retire),
	serve(api.OpWakeWait, (*Broker).wakeWait),
	serve(api.OpTake, (*Broker).take),
	serve(api.OpMod, (*Broker).modWait),
	serve(api.OpModReport, (*Broker).modReport),
)

func byName(served ...operation) map[string]operation {
	index := make(map[string]operation, len(served))
	for _, o := range served {
		index[o.Name] = o
	}
	return index
}

// serve has a typed method serve an operation. A caller of a newer version may
// say more than this broker understands: an upgrade beside a running broker must
// not shut its sessions out. What changes a meaning changes ipc.Protocol.
func serve[A, R any](op api.Op[A, R], method func(*Broker, context.Context, *link, A) (R, error)) operation {
	return operation{Row: op.Row, serve: func(ctx context.Context, b *Broker, l *link, raw json.RawMessage) (any, error) {
		var args A
		if err := bridge.DecodeAdditive(raw, bridge.MaxFrameBytes, &args); err != nil {
			return nil, err
		}
		return method(b, ctx, l, args)
	}}
}

// nowMillis is the present in Unix epoch milliseconds.
func (b *Broker) nowMillis() int64 { return b.opts.Now().UnixMilli() }

// changed counts a revision and tells everyone who watches.
func (b *Broker) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changedLocked()
}

func (b *Broker) changedLocked() {
	revision := b.revision.Add(1)
	for watcher := range b.watchers {
		select {
		case watcher <- struct{}{}:
		default: // it already has a change to look at
		}
	}
	for _, l := range b.conns {
		if l.watches {
			l.conn.Push(api.EventRevision, api.RevisionEvent{Revision: revision})
		}
	}
}

// Watch brings a signal whenever something changed, until stop is called.
// Several changes may be one signal.
func (b *Broker) Watch() (changes <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1) // one signal waits: the reader then looks at everything
	b.mu.Lock()
	b.watchers[watcher] = struct{}{}
	b.mu.Unlock()
	return watcher, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, watcher)
	}
}

func (b *Broker) subscribe(_ context.Context, l *link, _ api.Empty) (api.Empty, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.watches = true
	return api.Empty{}, nil
}

func (b *Broker) ticket(context.Context, *link, api.Empty) (string, error) {
	address := b.opts.Ticket()
	if address == "" {
		return "", bridge.Errorf(bridge.Unavailable, "this broker serves no dashboard; its log says why")
	}
	return address, nil
}

// HostBackground names the broker that a session started because none ran.
const HostBackground = "background"

// retire makes room for a broker that a person starts: only one that runs in
// the background leaves for another.
func (b *Broker) retire(context.Context, *link, api.Empty) (api.Empty, error) {
	if b.opts.Host != HostBackground {
		return api.Empty{}, bridge.Errorf(bridge.Conflict, "a broker already serves this home (process %d, started by %q)", ownPID(), b.opts.Host)
	}
	b.opts.Retire()
	return api.Empty{}, nil
}

// Expire moves mail that is too old to the archive, in steps, and reports how
// much expired (MSG-12).
func (b *Broker) Expire(ctx context.Context) (expired int, err error) {
	settings, err := b.opts.Settings()
	if err != nil {
		return 0, err
	}
	rule := store.ExpireRule{Limit: expireStep}
	now := b.opts.Now()
	if settings.MessageTTL > 0 {
		rule.TTLBefore = now.Add(-settings.MessageTTL).UnixMilli()
	}
	if settings.QueuedMailMaxAge > 0 {
		rule.QueuedBefore = now.Add(-settings.QueuedMailMaxAge).UnixMilli()
	}
	b.mu.Lock()
	for _, s := range b.roster.Live() {
		rule.Live = append(rule.Live, s.ID)
	}
	b.mu.Unlock()
	for {
		marks, err := b.opts.DB.Expire(ctx, rule)
		expired += len(marks)
		if err != nil || len(marks) < expireStep {
			if expired > 0 {
				b.changed()
			}
			return expired, err
		}
	}
}

// expireStep bounds one transaction of Expire, so that sends are not held up.
const expireStep = 500
