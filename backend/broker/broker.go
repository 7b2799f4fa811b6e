// Package broker is the core of the daemon. Each home has one broker, elected by a lock
// that dies with its holder. The broker knows the connected sessions and stores every
// message before it acknowledges it. It leases mail to hooks and tools until they report
// its outcome, and delivers decisions (rows MSG and DEC). Rules are in session, mail and
// decision, durable data in store.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker/costs"
	"bridge/backend/broker/entry"
	"bridge/backend/broker/events"
	"bridge/backend/broker/exchanges"
	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/broker/proving"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/store"
)

// Options configures a [Broker]. All fields are required except CLI, Proofs, Timing and HoldShared.
type Options struct {
	Home     config.Home
	Settings func() (config.Settings, error) // read from the file at each use
	DB       *store.DB
	Now      func() time.Time
	Log      *slog.Logger
	Host     string        // what hosts it: serve, background, desktop, service
	Version  string        // of this build
	URL      func() string // dashboard address without key, "" if none is served
	Keys     entry.Keys    // of the dashboard
	// Queue finds the queue command of codex.
	Queue func() (agent.Queue, error)
	// CLI finds the program of a kind and its version. If nil, the broker does not check versions.
	CLI func(ctx context.Context, kind bridge.AgentKind) (agent.Found, error)
	// Proofs knows which routes into the agents work; nil knows nothing.
	Proofs *proving.Service
	// HoldShared is set while older programs run. The JSON stores that they share with
	// this build then stay unchanged (VER-05).
	HoldShared bool
	Timing     Timing // of wakes; tests use shorter ones
	Retire     func() // ends this process cleanly; called for a background broker only

	// step, if set, is called at each named point of the work. Tests block there to put
	// concurrent steps into a fixed order.
	step func(point)
	// terminals replaces agent.CodexTerminals in tests.
	terminals func(cwd, dataDir string) agent.Terminals
}

// Timing sets the intervals and timeouts of wakes.
type Timing = wake.Timing

// Broker serves one home. It joins the parts and serves the local connections.
type Broker struct {
	*core
	mux *mux.Mux
}

var _ ipc.Handler = (*Broker)(nil)

// New creates a broker. It loads the known sessions and imports the acks that no broker
// received. It fails if the store cannot list the sessions.
func New(ctx context.Context, opts Options) (*Broker, error) {
	opts.Timing = opts.Timing.OrUsual()
	peers, err := opts.DB.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the known sessions: %w", err)
	}
	known := make([]session.Known, 0, len(peers))
	for _, p := range peers {
		known = append(known, session.Known{ID: p.ID, Name: p.Name, Kind: p.Agent, SessionID: p.SessionID})
	}
	prefs, err := wake.OpenPrefs(config.Shared{Home: opts.Home, Now: opts.Now, Hold: opts.HoldShared})
	if err != nil {
		opts.Log.Warn("the sessions' auto-wake choices are not remembered", "err", err)
	}
	c := &core{
		opts: opts, ledger: wake.Ledger{DB: opts.DB, Log: opts.Log, Now: opts.Now},
		feed: events.New(opts.Now().UnixMilli()), tasks: lifecycle.NewTasks(ctx),
	}
	c.Presence = presence.New(presence.Options{
		Known: known, Prefs: prefs, Settings: opts.Settings, Now: opts.Now, Log: opts.Log, Changed: func() { c.changed() }, Terminals: c.opts.terminals,
		Go: func(task func(context.Context)) { c.tasks.Go(func() { task(c.tasks.Context()) }) },
	})
	c.costs = costs.Service{Counter: costs.Open(config.CostsFile{Home: opts.Home}, opts.Now, opts.Log), Presence: c.Presence, DB: opts.DB}
	c.ledger.Spent = c.costs.Add
	c.tasks.Go(func() { c.costs.Run(c.tasks.Context()) })
	c.parts = newParts(c, prefs)
	c.Exchanges = exchanges.Open(exchanges.Options{
		File: config.PausesFile{Home: opts.Home}, Presence: c.Presence, DB: opts.DB, Settings: opts.Settings, Now: opts.Now, Log: opts.Log, Changed: c.changed, Announce: c.wakes.wakeAgain,
	})
	b := &Broker{core: c, mux: mux.New()}
	b.register()
	opts.Proofs.OnRecorded(func() { presence.Versions{Presence: c.Presence}.MarkBroken(opts.Proofs.Faults) })
	b.leases.importAcks(ctx)
	return b, nil
}

func newParts(c *core, prefs *wake.Prefs) parts {
	return parts{
		sessions:  &sessions{core: c, prefs: prefs},
		hooks:     &hooks{c},
		leases:    &leases{core: c, journal: ipc.Journal{Dir: c.opts.Home.ReadJournal()}},
		activity:  &activity{c},
		messages:  &messages{core: c},
		inbox:     &inbox{c},
		history:   &history{c},
		decisions: &decisions{c},
		chats:     &chats{c},
		children:  &children{core: c},
		idleness:  presence.Idleness{Presence: c.Presence, Doubt: c.opts.Timing.Doubt, Soon: c.soon, Again: func() { c.at(doubting) }},
		wakes:     &wakes{c},
		wakeHooks: &wakeHooks{c},
		channels:  &channels{c},
		mods:      &mods{c},
		queues:    &queues{c},
		status:    &status{core: c, started: c.opts.Now()},
		pairMail:  &pairMail{c},
	}
}

// Close stops the broker's own goroutines. The server closes the connections.
func (b *Broker) Close() {
	b.tasks.Stop()
	b.costs.Write()
}

// Connected admits a connection (ipc.Handler). It fails for a role that it may not have.
func (b *Broker) Connected(conn *ipc.Conn) (ipc.Welcome, error) {
	if err := api.CheckRole(conn.Hello().Role); err != nil {
		return ipc.Welcome{}, err
	}
	inside, err := b.insideOf(conn)
	if err != nil {
		return ipc.Welcome{}, err
	}
	b.Admit(conn, inside)
	return ipc.Welcome{Version: b.opts.Version, PID: ownPID(), URL: b.opts.URL()}, nil
}

// Disconnected removes a connection. The mail that it leased is offered again, and
// sessions that only it held leave the roster (ipc.Handler).
func (b *Broker) Disconnected(conn *ipc.Conn) {
	if b.jobs != nil {
		b.jobs.Disconnected(conn)
	}
	if b.prompts != nil {
		b.prompts.Disconnected(conn)
	}
	serverEnded := b.HasServerEnded(conn)
	b.Lock()
	defer b.Unlock()
	if l := b.Conns[conn]; l != nil {
		b.feed.Unsubscribe(conn)
		b.mods.modLostLocked(l)
		b.ForgetLocked(l, serverEnded)
	}
}

// Busy reports whether a connected session or plugin still needs this broker (MSG-01: an
// unneeded background broker exits).
func (b *Broker) Busy() bool {
	b.Lock()
	defer b.Unlock()
	for _, l := range b.Conns {
		if role := l.Conn.Hello().Role; role != api.RoleHook && role != api.RoleMod {
			return true
		}
	}
	return len(b.Serverless) > 0
}

// Handle serves one request (ipc.Handler). It fails with Invalid for an unknown operation.
func (b *Broker) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	if !b.mux.Has(op) {
		return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
	}
	l := b.Link(conn)
	if l == nil {
		return nil, bridge.Errorf(bridge.Unavailable, "the connection has ended")
	}
	if err := b.mux.Check(op, conn.Hello().Role, b.JobBehind(l)); err != nil {
		return nil, err
	}
	result, err := b.mux.Serve(presence.WithConn(ctx, conn), l, op, args)
	return result, b.explain(op, err)
}

// explain logs an internal error, because people are not shown its cause. It returns err.
func (b *Broker) explain(op string, err error) error {
	var e *bridge.Error
	if err == nil || errors.As(err, &e) && e.Code != bridge.Internal {
		return err
	}
	b.opts.Log.Error("an operation failed", "op", op, "err", err)
	return err
}

// register registers the broker's own operations. Those of parts are refused until the
// parts are registered.
func (b *Broker) register() {
	m := b.mux
	m.Refuse(errNoJobs, api.DelegatedOperations()...)
	m.Refuse(errNoQuestions, api.QuestionOperations()...)
	m.Refuse(errNoPrompts, api.PromptOperations()...)
	m.Refuse(errNoNetwork, api.NetworkOperations()...)
	mux.HandleLink(m, api.OpRegister, b.sessions.register)
	mux.HandleLink(m, api.OpLeave, b.sessions.leave)
	mux.HandleLink(m, api.OpAutoWake, b.sessions.autoWake)
	mux.HandleLink(m, api.OpHook, b.hooks.hook)
	mux.HandleLink(m, api.OpAck, b.leases.ack)
	mux.HandleLink(m, api.OpNack, b.leases.nack)
	mux.HandleLink(m, api.OpSend, b.messages.send)
	mux.HandleLink(m, api.OpSent, b.messages.sendStatus)
	mux.HandleLink(m, api.OpInbox, b.inbox.inbox)
	mux.HandleLink(m, api.OpWait, b.inbox.wait)
	mux.HandleLink(m, api.OpSearch, b.history.searchHistory)
	mux.HandleLink(m, api.OpDecide, b.decisions.decide)
	mux.HandleLink(m, api.OpDecisions, b.decisions.decisions)
	mux.HandleLink(m, api.OpPeers, b.status.peers)
	mux.HandleLink(m, api.OpStatus, b.status.status)
	mux.HandleLink(m, api.OpNeeds, b.needs)
	mux.HandleLink(m, api.OpWakeWait, b.wakeHooks.wakeWait)
	mux.HandleLink(m, api.OpTake, b.channels.take)
	mux.HandleLink(m, api.OpMod, b.mods.modWait)
	mux.HandleLink(m, api.OpModReport, b.mods.modReport)
	mux.HandleLink(m, api.OpSubscribe, b.subscribe)
	mux.HandleLink(m, api.OpRetire, b.retire)
	mux.Handle(m, api.OpApprove, b.approve)
	mux.Handle(m, api.OpPinDecision, mux.ForOwner(b, "pins by this command", func(ctx context.Context, args api.DecideArgs) (api.DecideResult, error) {
		return b.DecideOwner(ctx, "", args)
	}))
	mux.Handle(m, api.OpWithdrawDecision, mux.ForOwner(b, "withdraws decisions", b.WithdrawOwner))
	b.costs.Register(m)
	b.Exchanges.Register(m, b)
	b.opts.Proofs.Register(m, b)
	entry.Options{Keys: b.opts.Keys, URL: b.opts.URL, Presence: b.Presence}.Register(m)
}

// The process that holds the broker calls the following methods.

// Watch returns a channel that gets a signal after changes, until stop is called. Several
// changes may share one signal.
func (b *Broker) Watch() (changes <-chan struct{}, stop func()) { return b.feed.Watch() }

// Peers returns the live sessions, sorted by name.
func (b *Broker) Peers(ctx context.Context) ([]api.Peer, error) {
	peers, _, err := b.status.all(ctx)
	return peers, err
}

// Status returns the broker's present status.
func (b *Broker) Status(ctx context.Context) (api.Status, error) { return b.status.now(ctx) }

// Costs returns what Bridge put into each session's context (CTX-03).
func (b *Broker) Costs() api.Costs { return b.costs.Costs() }

// Work returns when sessions were at work after since, in Unix milliseconds.
func (b *Broker) Work(since int64) api.Work {
	b.Lock()
	defer b.Unlock()
	return api.Work{Began: b.status.started.UnixMilli(), Sessions: b.Turns.Since(since)}
}

// Chat sends the owner's message to a session and returns how far it came.
func (b *Broker) Chat(ctx context.Context, request chat.Request) (chat.Outcome, error) {
	return b.chats.carry(ctx, request)
}

// SendOwner stores the owner's own message, from the page that this process serves.
func (b *Broker) SendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error) {
	return b.messages.sendOwner(ctx, peerID, args)
}

// CheckChildren checks a session for native children in the background.
func (b *Broker) CheckChildren(peerID string) { b.children.check(peerID) }

func (b *Broker) subscribe(_ context.Context, l *link, _ api.Empty) (api.Empty, error) {
	b.Lock()
	defer b.Unlock()
	if b.Conns[l.Conn] == l {
		b.feed.Subscribe(l.Conn)
	}
	return api.Empty{}, nil
}

// HostBackground is the Host of a broker that a session started because none ran.
const HostBackground = "background"

// retire ends this broker for one that a person starts. It fails with Conflict unless
// this broker runs in the background.
func (b *Broker) retire(context.Context, *link, api.Empty) (api.Empty, error) {
	if b.opts.Host != HostBackground {
		return api.Empty{}, bridge.Errorf(bridge.Conflict, "a broker already serves this home (process %d, started by %q)", ownPID(), b.opts.Host)
	}
	b.opts.Retire()
	return api.Empty{}, nil
}

// Expire moves mail that is too old to the archive, in steps, and returns how many
// deliveries expired (MSG-12).
func (b *Broker) Expire(ctx context.Context) (expired int, err error) {
	settings, err := b.opts.Settings()
	if err != nil {
		return 0, err
	}
	rule := store.RuleAt(b.opts.Now(), settings.MessageTTL, settings.QueuedMailMaxAge)
	if b.pairs != nil {
		rule.Team = b.pairs.Keeps()
	}
	b.Lock()
	for _, s := range b.Roster.Live() {
		rule.Live = append(rule.Live, s.ID)
	}
	b.Unlock()
	for {
		marks, err := b.opts.DB.Expire(ctx, rule)
		expired += len(marks)
		if err != nil || len(marks) < rule.Limit {
			if expired > 0 {
				b.changed()
			}
			return expired, err
		}
	}
}
