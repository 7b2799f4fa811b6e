// Package dashboard is Bridge's HTTP door on the loopback address: the page,
// the read-only endpoints, the owner's messages, and server-sent events that
// say when something changed (seed 4.2, 4.3, 4.6, 5; rows DEC-17 to DEC-20,
// CHT, AUT, STO-12). Every request passes package guard. Reads go to the store
// alone and work without a broker; what the owner writes goes to the broker.
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

// Options says what a dashboard works with. All fields are required unless the
// comment says otherwise.
type Options struct {
	// Secret gives the launch secret. It is asked at every request, so that a
	// replaced secret shuts out old cookies.
	Secret func() (config.Secret, error)
	// Browsers keeps the cookies that are valid; nil keeps them in memory alone.
	Browsers guard.BrowserStore
	// Tickets are the keys that open the page.
	Tickets *guard.Tickets
	// Reader gives the store's read side. It is asked at every request and may
	// return the same one each time; the dashboard never closes it. An error
	// that is fs.ErrNotExist means that nothing was ever stored.
	Reader func(context.Context) (Reader, error)
	// Broker is the live broker, nil where there is none: reads still work.
	Broker Broker
	// Jobs are the delegated jobs; nil where there are none.
	Jobs runs.Jobs
	// Peering are the links with other PCs; nil where there are none.
	Peering Peering
	// NetworkSettings are what config.json says about them; nil where there are none.
	NetworkSettings network.Settings
	// NetworkLists is what paired PCs show of themselves; nil where there are none.
	NetworkLists func(context.Context) api.NetworkLists
	// JobOf returns the name of the delegated job at the other end of a connection, "" for
	// none; nil where there are no jobs.
	JobOf func(net.Conn) (job string, err error)
	// UserOf fails when a connection is not this user's, and reports whether the system
	// tells; nil where it never does.
	UserOf func(net.Conn) (known bool, err error)
	// Agents finds the agent CLIs of this computer and connects them; nil where
	// there are none to show.
	Agents Agents
	// Storage looks through the home's storage; nil where nothing can.
	Storage storage.Doctor
	// Maintenance is done when the owner asks for it, with the settings in
	// force; nil where none can be done.
	Maintenance func() maintain.Maintenance
	// Settings are those of config.json; nil where they cannot be changed.
	Settings Settings
	// PutAway remembers news that was put away; nil where nothing can.
	PutAway needsview.PutAway
	// Questions are what sessions ask; nil where there are none.
	Questions needsview.Questions
	// Prompts are the permission prompts of sessions; nil where there are none.
	Prompts runs.Prompts
	// Rules are the owner's standing rules; nil where there are none.
	Rules Rules
	// OpenLink shows a link in the owner's browser, and may last as long as that;
	// nil where there is none.
	OpenLink func(ctx context.Context, link string) error
	// Login switches the start of the desktop app at login; nil where the page is
	// served by another program.
	Login Login
	// Page holds the built page with index.html at its root. Nil, or without
	// index.html, the page answers 503 and says how to build it.
	Page fs.FS
	// Name and Version are this instance's.
	Name, Version string
	// Home is the folder where the data lives, for people to read; may be "".
	Home string
	// MaxHops is the hop at which mail wakes nobody; 0 for the default.
	MaxHops int
	Now     func() time.Time
	Log     *slog.Logger
}

// Rules are the owner's standing rules; *rules.Rules is one.
type Rules interface {
	needsview.Rules
	runs.Rules
}

// Peering is what the dashboard asks of the links with other PCs.
type Peering = network.Peering

// Reader is what the dashboard reads: *store.Reader and *store.DB have it. All
// methods may be called concurrently.
type Reader interface {
	// Recent returns the newest messages, newest first, archived ones included.
	Recent(ctx context.Context, limit int) ([]mail.HistoryRow, error)
	// Conversation returns messages from or to a peer, newest first, created
	// before the given time unless that is 0.
	Conversation(ctx context.Context, peerID string, before int64, limit int) ([]mail.HistoryRow, error)
	// Search returns messages whose body holds the query literally, newest first,
	// created before the given time unless that is 0.
	Search(ctx context.Context, query string, before int64, limit int) ([]mail.HistoryRow, error)
	// SearchWords returns messages and decisions by their words, the best first,
	// and how many rows the index is behind.
	SearchWords(ctx context.Context, query store.WordQuery) (hits []store.WordHit, behind int64, err error)
	// Find returns one message; its code is NotFound when there is none.
	Find(ctx context.Context, messageID string) (mail.HistoryRow, error)
	// Decisions returns the revisions that fit, newest first.
	Decisions(ctx context.Context, lookup decision.Lookup) ([]decision.Revision, error)
	// UnreadableDecisions returns those that Decisions passes over: of a topic, or
	// those in force of all ("").
	UnreadableDecisions(ctx context.Context, topic string) ([]store.UnreadableRow, error)
	Together(ctx context.Context, topic string) (next map[string]string, err error)
	// DecisionNotices returns the messages that told of a topic's revisions, the
	// newest first.
	DecisionNotices(ctx context.Context, topic string) ([]mail.HistoryRow, error)
	// CountSince counts the messages sent at a time or later.
	CountSince(ctx context.Context, since int64) (int, error)
	activity.Reader
	// Peers returns every session ever seen, the newest first.
	Peers(ctx context.Context) ([]store.Peer, error)
}

var (
	_ Reader = (*store.Reader)(nil)
	_ Reader = (*store.DB)(nil)
)

// Broker is what the dashboard asks of the live broker; *broker.Broker is one.
// All methods may be called concurrently. Status and SendOwner fail with code
// Unavailable when no broker runs.
type Broker interface {
	// Status tells what the broker knows. Its revision is no newer than the
	// rest, and grows after every change that this or the store shows: answers
	// are kept until it does.
	Status(ctx context.Context) (api.Status, error)
	// SendOwner stores a message from the owner durably before it returns, for the
	// session with that peer id or, where it is "", for all; args.To is what the
	// history shows. The same MessageID again makes no second copy.
	SendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error)
	// DecideOwner records a decision of the owner, and WithdrawOwner that he withdraws the
	// one in force on a topic, once for an id. Their codes are NotFound where there is none
	// in force that they replace, and Conflict where another one is.
	DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error)
	WithdrawOwner(ctx context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error)
	// Chat carries the owner's words to one session and says how far they came.
	// Its code is Conflict for a child that is not the session's.
	Chat(ctx context.Context, request chat.Request) (chat.Outcome, error)
	// Work tells when sessions were at work after a time, Unix milliseconds.
	Work(since int64) api.Work
	// LookAtChildren has the session's native children looked up anew, because
	// somebody looks at the session. It returns at once; a change is signalled.
	LookAtChildren(peerID string)
	// Watch brings a signal whenever something changed, until stop is called;
	// several changes may be one signal. A closed channel means that the broker
	// is gone: Watch is then called again a second later.
	Watch() (changes <-chan struct{}, stop func())
	// Changed says that something of what is shown changed.
	Changed()
}

// Agents is what the dashboard asks about agent CLIs; connect.Agents is one. All
// methods may be called concurrently.
type Agents interface {
	// List looks for every kind. It may take its time; its context ends with the
	// request.
	List(ctx context.Context) []connect.Agent
	// Standings lists those that are connected, and is quick.
	Standings() ([]connect.Standing, error)
	// Plan and PlanRemoval change nothing; Apply does what a plan says.
	Plan(ctx context.Context, kind bridge.AgentKind, choices setup.Choices) (setup.Plan, error)
	PlanRemoval(kind bridge.AgentKind) (setup.Plan, error)
	Apply(plan setup.Plan) error
	// Refused says why nothing may be connected from here, "" where it may.
	Refused() string
	// CommandLine is what a person types to run Bridge with these words.
	CommandLine(words ...string) string
}

var _ Agents = connect.Agents{}

// Dashboard is the HTTP handler. Its server must listen on a loopback address
// and set no write time-out (events are streams).
type Dashboard struct {
	guard  *guard.Guard
	routes []route
	log    *slog.Logger

	// The parts, a file for each.
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
		agents:    &agents{of: opts.Agents, now: opts.Now, log: opts.Log},
		settings:  &settings{of: opts.Settings, login: opts.Login, changing: &sync.Mutex{}},
		activity:  from.activity(),
		events:    newEvents(opts.Now),
		page:      pageFiles{opts.Page},
		browser:   browser{opts.OpenLink},
		stop:      stop,
	}
	d.runs = runs.New(opts.Jobs, opts.Prompts, opts.Rules, d.chats.bound)
	d.chats.runs = d.runs
	d.network = newNetwork(opts, d.settings.changing)
	d.states = &states{
		sources: from, instance: dto.Instance{Name: opts.Name, Version: opts.Version, Home: opts.Home}, runs: d.runs, storage: d.storage,
		began: opts.Now().UnixMilli(),
	}
	d.queue = needsview.New(needsview.Options{PutAway: opts.PutAway, Questions: opts.Questions, Rules: opts.Rules, Gather: d.states.facts, Changed: d.states.forget, Now: opts.Now, Log: opts.Log})
	d.states.queue = d.queue
	d.settings.changed = d.states.forget
	d.tasks = storage.NewTasks(storage.Options{
		Maintenance: opts.Maintenance, Commands: opts.Agents, Reports: d.storage, Life: ctx,
		Changed: d.events.taskChanged, Now: opts.Now, Log: opts.Log,
	})
	d.events.task = d.tasks.Event
	d.routes = d.table()
	d.follow(ctx, opts.Storage)
	return d
}

func newNetwork(opts Options, changing *sync.Mutex) *network.Network {
	home, err := config.ResolveHome(opts.Home, os.Getenv)
	folders := network.Folders{Reserved: config.ReservedFolders(home, os.Getenv).Check}
	if err != nil {
		folders.Reserved = func(string) error { return err }
	}
	return network.New(network.Options{
		Peering: opts.Peering, Lists: opts.NetworkLists, Settings: opts.NetworkSettings, Changing: changing, Folders: folders,
	})
}

// follow starts what goes on until ctx ends.
func (d *Dashboard) follow(ctx context.Context, doctor storage.Doctor) {
	if doctor != nil {
		d.followed.Go(func() {
			d.storage.Follow(ctx, func(err error) { d.log.Warn("the storage could not be looked through", "err", err) })
		})
	}
	if broker := d.sources.broker; broker != nil {
		d.followed.Go(func() { d.events.follow(ctx, broker) })
	} else {
		d.events.alone = true
	}
}

// EndCookies ends every cookie and every event stream: each browser needs a launch link
// again.
func (d *Dashboard) EndCookies() {
	d.guard.EndCookies()
	d.events.endStreams()
}

// Close stops maintenance that runs, ends every event stream and stops following
// the broker. Call it before http.Server.Shutdown, which waits for open streams.
// Other requests are still answered.
func (d *Dashboard) Close() error {
	d.stop()
	d.tasks.Close()
	d.events.close()
	d.followed.Wait()
	return nil
}

// ConnContext is for the http.Server that serves the dashboard: it looks at each new
// connection.
func (d *Dashboard) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return d.guard.ConnContext(ctx, conn)
}

// Watched reports whether a page is open: an event stream listens.
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

// serve orders the refusals: who asks comes before what exists, so that a
// stranger learns nothing, not even which paths there are.
func (d *Dashboard) serve(w *response, r *http.Request) error {
	if err := d.guard.Caller(r); err != nil {
		w.Header().Set("Connection", "close") // the look is once a connection: the next one is looked at anew
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

// guardFor says which guard a request needs. Where no route fits, the method tells:
// what would change something is refused like every mutation, so that another
// site's page cannot find out which addresses there are (AUT-02).
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

// noRoute is the answer where no route fits the method, or the path at all.
func noRoute(w http.ResponseWriter, allowed []string) error {
	if len(allowed) == 0 {
		return bridge.Errorf(bridge.NotFound, "there is nothing under this address")
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	return httpjson.Refusal{Status: http.StatusMethodNotAllowed, Sentence: "this address does not take that method"}
}

// response remembers whether the answer has begun, so that a late error does
// not write a second one into it.
type response struct {
	http.ResponseWriter
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(data []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach flushing and deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
