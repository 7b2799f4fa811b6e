// Package dashboard is Bridge's HTTP server on the loopback address: the page, the
// read-only endpoints, the owner's messages, and server-sent events for changes
// (seed 4.2, 4.3, 4.6, 5; rows DEC-17 to DEC-20, CHT, AUT, STO-12). Every request
// passes package guard. Reads use only the store and work without a broker; the
// owner's writes go to the broker.
package dashboard

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"bridge/backend/agent/connect"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/activity"
	"bridge/backend/doors/dashboard/drafts"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/doors/dashboard/needsview"
	"bridge/backend/doors/dashboard/network"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/doors/dashboard/storage"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/store"
)

// Options configures a Dashboard. All fields are required unless the comment says
// otherwise.
type Options struct {
	// Secret returns the launch secret. It is called for every request, so that a
	// new secret invalidates old cookies.
	Secret func() (config.Secret, error)
	// Browsers stores the valid cookies; nil keeps them only in memory.
	Browsers guard.BrowserStore
	// Tickets are the keys that open the page.
	Tickets *guard.Tickets
	// Reader returns the store's read side. It is called for every request and may
	// return the same one; the dashboard never closes it. fs.ErrNotExist means that
	// nothing was ever stored.
	Reader func(context.Context) (Reader, error)
	// Broker is the live broker, or nil: reads still work.
	Broker Broker
	// Jobs are the delegated jobs; nil without any.
	Jobs runs.Jobs
	// Peering holds the links with other PCs; nil without any.
	Peering Peering
	// NetworkSettings are the settings for other PCs in config.json; nil without any.
	NetworkSettings network.Settings
	// NetworkLists returns the lists that paired PCs share; nil without any.
	NetworkLists func(context.Context) api.NetworkLists
	// JobOf returns the name of the delegated job at the other end of a connection,
	// or ""; nil without jobs.
	JobOf func(net.Conn) (job string, err error)
	// UserOf fails if a connection belongs to another user, and reports whether the
	// system knows; nil if it never does.
	UserOf func(net.Conn) (known bool, err error)
	// Agents finds and connects the agent CLIs of this computer; nil disables that.
	Agents Agents
	// Storage inspects the home's storage; nil disables that.
	Storage storage.Doctor
	// Maintenance returns the maintenance with the current settings, for the
	// owner's requests; nil disables it.
	Maintenance func() maintain.Maintenance
	// Settings are those of config.json; nil if they cannot be changed.
	Settings Settings
	// PutAway stores dismissed news; nil disables dismissing.
	PutAway needsview.PutAway
	// Drafts keeps what the owner typed and did not send; nil keeps nothing.
	Drafts drafts.Store
	// Questions are the sessions' questions; nil without any.
	Questions needsview.Questions
	// Prompts are the permission prompts of sessions; nil without any.
	Prompts runs.Prompts
	// Rules are the owner's standing rules; nil without any.
	Rules Rules
	// Exchanges are the pairs of sessions that write each other; nil without a broker.
	Exchanges needsview.Exchanges
	// OpenLink opens a link in the owner's browser, and may run as long as the
	// browser; nil without one.
	OpenLink func(ctx context.Context, link string) error
	// Login switches the desktop app's start at login; nil if another program
	// serves the page.
	Login Login
	// Page holds the built page with index.html at its root. If it is nil or lacks
	// index.html, the page answers 503 with build instructions.
	Page fs.FS
	// Instance identifies this instance. Its Home may be "".
	Instance dto.Instance
	// MaxHops is the hop count from which mail wakes no session; 0 for the default.
	MaxHops int
	Now     func() time.Time
	Log     *slog.Logger
}

// Rules are the owner's standing rules; *rules.Rules implements it.
type Rules interface {
	needsview.Rules
	runs.Rules
}

// Peering is the dashboard's view of the links with other PCs.
type Peering = network.Peering

// Reader is the dashboard's view of the store; *store.Reader and *store.DB
// implement it. All methods are safe for concurrent use.
type Reader interface {
	// Recent returns the newest messages, newest first, including archived ones.
	Recent(ctx context.Context, limit int) ([]mail.HistoryRow, error)
	// Conversation returns messages from or to a peer, newest first, created
	// before the given time unless that is 0.
	Conversation(ctx context.Context, peerID string, before int64, limit int) ([]mail.HistoryRow, error)
	// Search returns messages whose body contains the query literally, newest
	// first, created before the given time unless that is 0.
	Search(ctx context.Context, query string, before int64, limit int) ([]mail.HistoryRow, error)
	// SearchWords searches messages and decisions by words, best first. It also
	// returns how many rows the index lags behind.
	SearchWords(ctx context.Context, query store.WordQuery) (hits []store.WordHit, behind int64, err error)
	// Find returns one message. It fails with NotFound if there is none.
	Find(ctx context.Context, messageID string) (mail.HistoryRow, error)
	// Decisions returns the matching revisions, newest first.
	Decisions(ctx context.Context, lookup decision.Lookup) ([]decision.Revision, error)
	// UnreadableDecisions returns the rows that Decisions omits: those of a topic,
	// or with "" those in force of all topics.
	UnreadableDecisions(ctx context.Context, topic string) ([]store.UnreadableRow, error)
	Together(ctx context.Context, topic string) (next map[string]string, err error)
	// DecisionNotices returns the messages about a topic's revisions, newest first.
	DecisionNotices(ctx context.Context, topic string) ([]mail.HistoryRow, error)
	// CountSince counts the messages sent at a time or later.
	CountSince(ctx context.Context, since int64) (int, error)
	activity.Reader
	// Peers returns every session ever seen, newest first.
	Peers(ctx context.Context) ([]store.Peer, error)
}

var (
	_ Reader = (*store.Reader)(nil)
	_ Reader = (*store.DB)(nil)
)

// Broker is the dashboard's view of the live broker; *broker.Broker implements it.
// All methods are safe for concurrent use. Status and SendOwner fail with
// Unavailable if no broker runs.
type Broker interface {
	// Status returns the broker's state. Its revision is no newer than the rest,
	// and increases after every change of this or the store: answers are cached
	// until then.
	Status(ctx context.Context) (api.Status, error)
	// SendOwner stores a message from the owner durably before it returns. peerID
	// is its recipient, or "" for all sessions; the history shows args.To. A
	// repeated MessageID makes no second copy.
	SendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error)
	// DecideOwner records a decision of the owner. WithdrawOwner withdraws the
	// current one on a topic, once per id. They fail with NotFound if there is no
	// current one to replace, and with Conflict if another one is current.
	DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error)
	WithdrawOwner(ctx context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error)
	// Chat delivers the owner's message to one session and returns its progress. It
	// fails with Conflict for a child of another session.
	Chat(ctx context.Context, request chat.Request) (chat.Outcome, error)
	// Work returns the sessions' working times after since, Unix milliseconds.
	Work(since int64) api.Work
	// Costs returns what Bridge put into each session's context.
	Costs() api.Costs
	// CheckChildren refreshes the session's native children, because a person
	// views the session. It returns immediately; a change is signalled.
	CheckChildren(peerID string)
	// Watch returns a channel with a signal after changes, until stop is called;
	// several changes may be one signal. The channel closes when the broker ends:
	// call Watch again a second later.
	Watch() (changes <-chan struct{}, stop func())
	// Changed invalidates the shown state.
	Changed()
}

// Agents is the dashboard's view of the agent CLIs; connect.Agents implements it.
// All methods are safe for concurrent use.
type Agents interface {
	// List searches every kind. It may be slow; its context ends with the request.
	List(ctx context.Context) []connect.Agent
	// Standings returns the connected ones, and is quick.
	Standings() ([]connect.Standing, error)
	// Plan and PlanRemoval change nothing; Apply executes a plan.
	Plan(ctx context.Context, kind bridge.AgentKind, choices setup.Choices) (setup.Plan, error)
	PlanRemoval(kind bridge.AgentKind) (setup.Plan, error)
	Apply(plan setup.Plan) error
	// Refused returns why no agent may be connected from here, or "".
	Refused() string
	// Looked returns the folders of the PATH that a search looks in.
	Looked() []string
	// CommandLine returns the command that a person types to run Bridge.
	CommandLine(args ...string) string
}

var _ Agents = connect.Agents{}

// Dashboard is the HTTP handler. Its server must listen on a loopback address and
// set no write timeout, because events are streams.
type Dashboard struct {
	guard  *guard.Guard
	routes []route
	log    *slog.Logger

	// The parts, one file each.
	sources   *sources
	states    *states
	messages  messages
	decisions decisions
	chats     *chats
	runs      *runs.Runs
	network   *network.Network
	queue     *needsview.Queue
	activity  *activity.Activity
	storage   *storage.Reports
	tasks     *storage.Tasks
	agents    *agents
	settings  *settings
	events    *events
	page      pageFiles
	browser   browser

	stop     context.CancelFunc
	followed sync.WaitGroup
}

// New returns a dashboard that follows the broker's revisions until Close.
func New(opts Options) *Dashboard {
	if opts.MaxHops == 0 {
		opts.MaxHops = bridge.DefaultMaxHops
	}
	ctx, stop := context.WithCancel(context.Background())
	from := &sources{open: opts.Reader, broker: opts.Broker, maxHops: opts.MaxHops, now: opts.Now}
	d := &Dashboard{
		guard:     guard.New(guard.Options{Secret: opts.Secret, Browsers: opts.Browsers, Tickets: opts.Tickets, Job: opts.JobOf, User: opts.UserOf, Now: opts.Now}),
		log:       opts.Log,
		sources:   from,
		messages:  messages{from},
		decisions: decisions{from},
		chats:     &chats{sources: from, handles: newHandles(), sends: guard.NewWindow(opts.Now, maxOwnerSends, time.Minute)},
		storage:   storage.NewReports(opts.Storage, opts.Now),
		agents:    &agents{agents: opts.Agents, proofs: from.proofs, now: opts.Now, log: opts.Log},
		settings:  &settings{settings: opts.Settings, login: opts.Login, changing: &sync.Mutex{}},
		activity:  from.activity(),
		events:    newEvents(opts.Now),
		page:      pageFiles{opts.Page},
		browser:   browser{opts.OpenLink, drafts.New(opts.Drafts)},
		stop:      stop,
	}
	d.runs = runs.New(opts.Jobs, opts.Prompts, opts.Rules, d.chats.bound)
	d.chats.runs = d.runs
	d.network = newNetwork(opts, d.settings.changing)
	d.states = &states{
		sources: from, instance: opts.Instance, runs: d.runs, storage: d.storage,
		began: opts.Now().UnixMilli(), settings: d.settings,
	}
	d.queue = needsview.New(needsview.Options{PutAway: opts.PutAway, Questions: opts.Questions, Rules: opts.Rules, Exchanges: opts.Exchanges, Gather: d.states.facts, Changed: d.states.forget, Now: opts.Now, Log: opts.Log})
	d.states.queue = d.queue
	d.settings.changed = d.states.forget
	d.tasks = storage.NewTasks(storage.Options{
		Maintenance: opts.Maintenance, Commands: opts.Agents, Reports: d.storage, Context: ctx,
		Changed: d.events.taskChanged, Now: opts.Now, Log: opts.Log,
	})
	d.events.task = d.tasks.Event
	d.routes = d.table()
	d.follow(ctx, opts.Storage)
	return d
}

func newNetwork(opts Options, changing *sync.Mutex) *network.Network {
	home, err := config.ResolveHome(opts.Instance.Home, os.Getenv)
	folders := network.Folders{Reserved: config.ReservedFolders(home, os.Getenv).Check}
	if err != nil {
		folders.Reserved = func(string) error { return err }
	}
	return network.New(network.Options{
		Peering: opts.Peering, Lists: opts.NetworkLists, Settings: opts.NetworkSettings, Changing: changing, Folders: folders,
	})
}

// follow starts the background work until ctx ends.
func (d *Dashboard) follow(ctx context.Context, doctor storage.Doctor) {
	if doctor != nil {
		d.followed.Go(func() {
			d.storage.Run(ctx, func(err error) { d.log.Warn("the storage could not be looked through", "err", err) })
		})
	}
	if broker := d.sources.broker; broker != nil {
		d.followed.Go(func() { d.events.follow(ctx, broker) })
	} else {
		d.events.alone = true
	}
}

// EndCookies ends every cookie and event stream: each browser needs a new launch
// link.
func (d *Dashboard) EndCookies() {
	d.guard.EndCookies()
	d.events.endStreams()
}

// Close stops running maintenance, ends every event stream and stops following the
// broker. Call it before http.Server.Shutdown, which waits for open streams. It
// still answers other requests.
func (d *Dashboard) Close() error {
	d.stop()
	d.tasks.Close()
	d.events.close()
	d.followed.Wait()
	return nil
}

// ConnContext is for the dashboard's http.Server: it checks each new connection.
func (d *Dashboard) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return d.guard.ConnContext(ctx, conn)
}

// Watched reports whether a page is open, as an event stream.
func (d *Dashboard) Watched() bool { return d.events.listening() }

// ServeHTTP answers one request: guard, route, handler, and the error's status.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &response{ResponseWriter: w}
	defer d.recoverPanic(answer, r)
	guard.SecurityHeaders(answer.Header())
	if err := d.serve(answer, r); err != nil {
		d.writeError(answer, r, err)
	}
}

// serve orders the refusals: it checks the caller before the path, so that a
// stranger does not even learn which paths exist.
func (d *Dashboard) serve(w *response, r *http.Request) error {
	if err := d.guard.Caller(r); err != nil {
		w.Header().Set("Connection", "close") // a connection is checked once: the next one is checked again
		return err
	}
	if err := d.guard.Host(r); err != nil {
		return err
	}
	matched, allowed := match(d.routes, r)
	if matched == nil || matched.kind != guard.Entry {
		if err := d.guard.Cookie(r); err != nil {
			if bridge.CodeOf(err) == bridge.Denied && guard.IsNavigation(r) {
				return guard.WriteDoor(w)
			}
			return err
		}
	}
	if err := d.guard.Request(guardFor(matched, r), r); err != nil {
		return err
	}
	if matched == nil {
		return noRoute(w, allowed)
	}
	if matched.kind == guard.Read {
		if err := checkParams(matched.pattern, r); err != nil {
			return err
		}
	}
	return matched.handle(w, r)
}

// guardFor returns the guard kind of a request. Without a route, the method
// decides: a mutating method is refused like every mutation, so that another site's
// page cannot discover addresses (AUT-02).
func guardFor(matched *route, r *http.Request) guard.Kind {
	switch {
	case matched != nil:
		return matched.kind
	case slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, r.Method):
		return guard.Page
	default:
		return guard.Mutation
	}
}

// noRoute answers a request without a route for its method or path.
func noRoute(w http.ResponseWriter, allowed []string) error {
	if len(allowed) == 0 {
		return bridge.Errorf(bridge.NotFound, "there is nothing under this address")
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	return httpjson.Refusal{Status: http.StatusMethodNotAllowed, Sentence: "this address does not take that method"}
}

// response records whether the answer has begun, so that a late error does not
// write a second answer into it.
type response struct {
	http.ResponseWriter
	started bool
}

func (w *response) WriteHeader(status int) {
	w.started = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(data []byte) (int, error) {
	w.started = true
	return w.ResponseWriter.Write(data)
}

// Unwrap gives http.ResponseController access to flushing and deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
