// Package daemon puts a running bridge together: election lock, store, broker,
// local link and dashboard, started and stopped in order. `bridge serve` and
// the desktop app both run it; nothing else wires these parts.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"bridge/backend/agent"
	"bridge/backend/agent/clidata"
	"bridge/backend/agent/connect"
	"bridge/backend/agent/models"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/remote"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/doors/dashboard/needsview"
	"bridge/backend/jobs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/network/files"
	"bridge/backend/network/pairing"
	"bridge/backend/network/remotejobs"
	"bridge/backend/network/sharing"
	"bridge/backend/owner/prompts"
	"bridge/backend/owner/prompts/codexthreads"
	"bridge/backend/owner/questions"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/sandbox"
	"bridge/backend/platform/shellenv"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/rules"
	"bridge/backend/storage/store"
)

// Options says what to run. All fields are required unless they say otherwise.
type Options struct {
	Home    config.Home
	Getenv  func(string) string
	Host    string // serve, background, desktop or service
	Port    *int   // dashboard port; nil for the configured one
	Page    fs.FS  // the built page
	Version string
	// Agents lets the page connect the agent CLIs of this computer. Its zero value
	// is those of Home, connected to this very program.
	Agents connect.Agents
	// OpenLink shows a link in the owner's browser; nil where there is none.
	OpenLink func(ctx context.Context, link string) error
	// Login lets the page switch the start of the desktop app at login; nil where
	// that app is not what runs.
	Login dashboard.Login
	// BackUpMessages starts a process of low priority that makes one backup of the
	// messages; done is closed at its end. It is asked when BRIDGE_AUTO_BACKUP
	// says so; nil never backs up by itself.
	BackUpMessages func() (done <-chan struct{}, err error)
	// RunJob starts the runner of the job whose folder that is, apart from this
	// process, and returns its process id; nil has no delegated jobs.
	RunJob func(folder string) (pid int, err error)
	// Terminal is the environment of a new terminal of the owner's, in which programs are
	// found and agents' CLIs are asked; nil for the environment of this process.
	Terminal *shellenv.Terminal
	// Sandbox is the command that leads to sandbox.Main: git runs below that floor in the
	// repositories of jobs. Empty where this system has none.
	Sandbox []string
	// IdleExit ends a daemon that nothing needed for so long; 0 never does.
	IdleExit time.Duration
	// Replace is the owner's word that an empty store may take the place of a lost
	// one (STO-17).
	Replace bool
	Now     func() time.Time
	Log     *slog.Logger
}

// Daemon is a running bridge.
type Daemon struct {
	opts      Options
	lock      *sqlitex.Lock
	lease     *lease.Lease
	older     lease.Older // programs that were alive at the start
	has       bool        // the home had a store at the start
	kept      string      // where what was left of a lost store is, "" where none was replaced
	db        *store.DB
	broker    *broker.Broker
	questions *questions.Questions // nil where questions.db cannot be used
	prompts   *prompts.Prompts
	rules     *rules.Rules
	jobs      *jobs.Jobs                               // nil where there are none
	peering   *pairing.Peering                         // nil where the pairs cannot be read
	executor  *remotejobs.Executor                     // nil where there are no jobs
	requester *remotejobs.Requester                    // like it
	frames    map[string]func(remote.PC, remote.Frame) // what serves those of a type; set before links are
	files     *files.Transfers                         // nil where other PCs are not reached
	sharing   *sharing.Sharing                         // nil as peering
	git       *gitwork.Git                             // nil where this PC has none
	clis      agent.Detector
	link      *ipc.Server
	socket    net.Listener
	web       net.Listener
	http      *http.Server
	pages     *dashboard.Dashboard
	tickets   *guard.Tickets
	tasks     *lifecycle.Tasks // background goroutines
	retired   chan struct{}
	once      sync.Once
}

// startSteps start a daemon, in this order. The port is tried before the home is touched and
// before another broker is asked to leave. The socket is offered last, when requests can be
// served.
var startSteps = []func(*Daemon, context.Context) error{
	(*Daemon).readSettings,
	(*Daemon).lookForStore,
	(*Daemon).tryPort,
	(*Daemon).elect,
	(*Daemon).bindPort,
	(*Daemon).replaceStore,
	(*Daemon).register,
	(*Daemon).lookForOlder,
	(*Daemon).openStore,
	openRules,
	(*Daemon).startBroker,
	startQuestions,
	(*Daemon).startJobs,
	(*Daemon).startPeering,
	(*Daemon).startDashboard,
	(*Daemon).startLink,
}

// Start returns a running daemon. If a step fails, Start closes what the steps before have
// opened, and returns the error of that step.
func Start(ctx context.Context, opts Options) (*Daemon, error) {
	d := &Daemon{opts: opts, retired: make(chan struct{}), tasks: lifecycle.NewTasks(ctx)}
	for _, start := range startSteps {
		if err := start(d, ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	d.tasks.Go(d.expireLoop)
	d.startBackups()
	d.tasks.Go(d.sizesLoop)
	d.tasks.Go(func() {
		codexthreads.New(codexthreads.Options{Broker: d.broker, Desk: d.prompts, Log: opts.Log}).Run(d.tasks.Context())
	})
	if opts.IdleExit > 0 {
		d.tasks.Go(d.idleLoop)
	}
	return d, nil
}

// Check says, in one sentence, what would keep a broker from serving this home:
// settings or a store that this build must not touch, maintenance, a lost store,
// or a disk that takes nothing. It changes nothing.
func Check(ctx context.Context, home config.Home, getenv func(string) string) error {
	if _, err := home.Settings(getenv); err != nil {
		return err
	}
	if err := lease.CheckFree(home); err != nil {
		return err
	}
	if _, err := check.HasStore(ctx, home); err != nil {
		return err
	}
	reader, err := store.OpenReader(ctx, home.DB())
	switch {
	case err == nil:
		err = reader.Close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil // it will be made
	}
	if err != nil {
		return err
	}
	if err := disk.TryWrite(home.Dir()); err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the home folder %s cannot be written: %s", home.Dir(), disk.Reason(err)))
	}
	return nil
}

// readSettings refuses settings that cannot be read before anything is done.
func (d *Daemon) readSettings(context.Context) error {
	_, err := d.opts.Home.Settings(d.opts.Getenv)
	return err
}

// lookForStore refuses a home whose store is lost, before anything is touched and
// before another broker is asked to leave: the leases that tell of a loss are
// cleared by whoever registers.
func (d *Daemon) lookForStore(ctx context.Context) (err error) {
	d.has, err = check.HasStore(ctx, d.opts.Home)
	switch {
	case !d.opts.Replace:
		return err
	case errors.Is(err, check.ErrLost):
		return nil
	case d.has:
		return bridge.Errorf(bridge.Denied, "nothing is lost: %s is there, and stays; `bridge serve` without --new-store serves it", d.opts.Home.DB())
	}
	d.opts.Replace = false // a home that never had a store loses nothing
	return err
}

// replaceStore makes room for an empty store, now that no other broker can come.
func (d *Daemon) replaceStore(ctx context.Context) (err error) {
	if !d.opts.Replace {
		return nil
	}
	if d.kept, err = d.maintenance().Restores().Replace(ctx); err == nil {
		d.opts.Log.Warn("the home's store was lost; its owner begins with an empty one", "kept", d.kept)
	}
	return err
}

// Kept is where what was left of a lost store is, "" where none was replaced.
func (d *Daemon) Kept() string { return d.kept }

// tryPort takes the dashboard's port on loopback before anything else is done,
// so that a port in use leaves everything as it was. A port that this home's own
// broker has is left to elect: it makes that broker leave, or says who it is.
// Background brokers take none before they are elected: of many that start at
// once the losers would keep the winner from the port.
func (d *Daemon) tryPort(ctx context.Context) error {
	if d.opts.Host == broker.HostBackground {
		return nil
	}
	err := d.bindPort(ctx)
	if err != nil && d.ownBrokerHasPort(ctx) {
		return nil
	}
	return err
}

// bindPort takes the port, unless tryPort did. A background broker that finds it
// taken serves on a free one: sessions must not wait for a port.
func (d *Daemon) bindPort(ctx context.Context) error {
	if d.web != nil {
		return nil
	}
	port, err := d.port()
	if err != nil {
		return err
	}
	d.web, err = listenLoopback(ctx, port)
	if err != nil && d.opts.Host == broker.HostBackground {
		d.web, err = listenLoopback(ctx, 0)
	}
	if err != nil {
		return bridge.WithCause(bridge.Conflict, err, fmt.Sprintf(
			"port %d on 127.0.0.1 is in use by another program: choose another with --port, or --port 0 for a free one", port))
	}
	return nil
}

func (d *Daemon) port() (int, error) {
	if d.opts.Port != nil {
		return *d.opts.Port, nil
	}
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	return settings.Port, err
}

// listenLoopback returns a nil listener with an error.
func listenLoopback(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", loopback(port))
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ownBrokerHasPort reports whether the port belongs to a broker of this home.
func (d *Daemon) ownBrokerHasPort(ctx context.Context) bool {
	port, err := d.port()
	if err != nil {
		return false
	}
	client, err := d.dialBroker(ctx, time.Second)
	if err != nil {
		return false
	}
	defer client.Close()
	return client.Welcome().URL == "http://"+loopback(port)
}

// elect takes the lock that makes this the one broker of the home (MSG-01). A
// background broker that holds it is asked to leave.
func (d *Daemon) elect(ctx context.Context) error {
	if err := d.opts.Home.Ensure(); err != nil {
		return err
	}
	lock, err := sqlitex.AcquireLock(ctx, d.opts.Home.BrokerLock())
	if errors.Is(err, sqlitex.ErrLocked) {
		lock, err = d.takeOver(ctx)
	}
	d.lock = lock
	if err != nil {
		return err
	}
	_, err = d.opts.Home.Token() // a damaged one must be known before the store is touched
	return err
}

// takeOverPatience is how long the broker that holds the election may take to
// finish, or to begin so that it can be asked.
const takeOverPatience = 10 * time.Second

const takeOverPause = 20 * time.Millisecond

// takeOver takes the place of a background broker, which is asked to leave, and so is
// another one that a session starts as soon as that has left. A broker that holds the
// election and is not to be reached is about to end, or has just begun: it is looked at
// again.
func (d *Daemon) takeOver(ctx context.Context) (*sqlitex.Lock, error) {
	if d.opts.Host == broker.HostBackground {
		return nil, bridge.Errorf(bridge.Conflict, "another broker already serves this home")
	}
	ctx, cancel := context.WithTimeout(ctx, takeOverPatience)
	defer cancel()
	var asked *ipc.Client // a broker that is to leave, while it is there
	defer func() { drop(asked) }()
	for {
		lock, err := sqlitex.AcquireLock(ctx, d.opts.Home.BrokerLock())
		if !errors.Is(err, sqlitex.ErrLocked) {
			return lock, err
		}
		if asked == nil {
			if asked, err = d.askToRetire(ctx); err != nil {
				return nil, err
			}
		} else if isClosed(asked.Done()) {
			drop(asked)
			asked = nil // another one has the home meanwhile
		}
		switch {
		case ipc.Pause(ctx, takeOverPause):
		case asked != nil:
			return nil, bridge.Errorf(bridge.Conflict, "another broker serves this home and did not make room")
		default:
			return nil, bridge.Errorf(bridge.Conflict, "another broker holds this home but does not answer")
		}
	}
}

// drop lets go of a connection, if there is one. Whoever is at its other end ends.
func drop(client *ipc.Client) {
	if client != nil {
		_ = client.Close()
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// askToRetire asks the broker that serves the home to leave. The connection lasts as long
// as that broker; it is nil where none was there to be asked.
func (d *Daemon) askToRetire(ctx context.Context) (asked *ipc.Client, err error) {
	client, err := d.dialBroker(ctx, 0)
	switch {
	case errors.Is(err, ipc.ErrSilent):
		return nil, bridge.WithCause(bridge.Conflict, err, "another broker holds this home: "+err.Error())
	case bridge.CodeOf(err) == bridge.Unavailable, bridge.CodeOf(err) == bridge.NotFound: // the latter: it makes the token yet
		return nil, nil
	case err != nil:
		return nil, bridge.WithCause(bridge.Conflict, err, "another broker holds this home but does not answer")
	}
	if err := client.Retire(ctx); err != nil && bridge.CodeOf(err) != bridge.Unavailable { // that is gone before its answer is out
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// dialBroker connects to the broker that serves this home, or will within
// patience. It makes nothing in the home.
func (d *Daemon) dialBroker(ctx context.Context, patience time.Duration) (*ipc.Client, error) {
	token, err := d.opts.Home.ExistingToken()
	if err != nil {
		return nil, err
	}
	target := ipc.Target{Socket: d.opts.Home.Socket(), Token: string(token)}
	return ipc.DialPatiently(ctx, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: d.opts.Version}, patience)
}

// maintenance keeps the home's storage by the settings in force; damaged
// ones are a finding of the report, and for work the variables do.
func (d *Daemon) maintenance() maintain.Maintenance {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		settings = config.FallbackSettings(d.opts.Getenv)
	}
	m := maintain.New(d.opts.Home, "the broker ("+d.opts.Host+")", settings, d.opts.Now)
	m.InBroker = true
	return m
}

// register says that this process writes, so that maintenance keeps away while
// it does (STO-09), and refuses to start while maintenance has the home.
func (d *Daemon) register(context.Context) (err error) {
	d.lease, err = d.maintenance().Worker().Register()
	return err
}

// lookForOlder finds the older programs of the home, for as long as this daemon
// lives: their leaving is the next one's business. Without any, what waited for
// that is written (VER-05).
func (d *Daemon) lookForOlder(context.Context) (err error) {
	if d.older, err = lease.OlderPrograms(d.opts.Home); err != nil {
		return err
	}
	if len(d.older.Programs) > 0 {
		d.opts.Log.Warn("older programs are alive: nothing that they share is upgraded", "programs", d.older.Programs)
	}
	if d.older.JSON > 0 {
		return nil
	}
	done, err := d.maintenance().Worker().ApplyPending()
	if err != nil {
		d.opts.Log.Error("pending writes to JSON stores wait on", "err", err)
	} else if done > 0 {
		d.opts.Log.Info("pending writes to JSON stores are done", "writes", done)
	}
	return nil
}

// openStore opens the store. While older programs of the home are alive it keeps
// its schema (VER-04).
func (d *Daemon) openStore(ctx context.Context) error {
	db, err := store.Open(ctx, d.opts.Home.DB(), store.Options{
		Now: d.opts.Now, Log: d.opts.Log, Index: d.opts.Home.History(), OldestReader: d.older.Schema, Existing: d.has,
	})
	d.db = db
	if err != nil {
		return err
	}
	return d.lease.StoreIsThere()
}

func (d *Daemon) startBroker(ctx context.Context) (err error) {
	d.tickets = guard.NewTickets(d.opts.Now)
	d.broker, err = broker.New(ctx, broker.Options{
		Home:       d.opts.Home,
		Settings:   func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) },
		DB:         d.db,
		Now:        d.opts.Now,
		Log:        d.opts.Log,
		Host:       d.opts.Host,
		Version:    d.opts.Version,
		HoldShared: d.older.JSON > 0,
		URL:        d.URL,
		Keys:       keys{d},
		Queue:      d.queue,
		CLI:        d.cli,
		Retire:     func() { d.once.Do(func() { close(d.retired) }) },
	})
	if err == nil {
		startPrompts(d)
	}
	return err
}

// startQuestions takes up what sessions ask their owner. A questions.db that cannot be
// used keeps nobody from their mail.
func startQuestions(d *Daemon, ctx context.Context) (err error) {
	d.questions, err = questions.Open(ctx, questions.Options{Path: filepath.Join(d.opts.Home.Dir(), "questions.db"), Broker: d.broker, Now: d.opts.Now, Log: d.opts.Log})
	if err != nil {
		d.questions = nil
		d.opts.Log.Error("questions to the owner are not served", "err", err)
		return nil
	}
	d.broker.Ask(d.questions)
	d.tasks.Go(func() { d.questions.Resume(d.tasks.Context()) })
	return nil
}

// openRules opens the owner's standing rules. No session can ask for anything yet.
func openRules(d *Daemon, _ context.Context) error {
	d.rules = rules.Open(rules.Options{Path: filepath.Join(d.opts.Home.Dir(), config.RulesStore), Now: d.opts.Now, Log: d.opts.Log})
	return nil
}

// startPrompts has permission prompts of sessions put to their owner, as far as he wants
// that.
func startPrompts(d *Daemon) {
	d.prompts = prompts.New(prompts.Options{
		Broker:   d.broker,
		Settings: func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) },
		SetAway: func(on bool) error {
			_, err := d.opts.Home.UpdateConfig(func(c *config.Config) error { c.Away = on; return nil })
			return err
		},
		Watched: func() bool { return d.pages != nil && d.pages.Watched() },
		Answers: filepath.Join(d.opts.Home.Dir(), "approvals"), Open: filepath.Join(d.opts.Home.Dir(), config.PromptsOpen),
		Waits: clidata.ClaudeWaits,
		Rule: func(one prompt.Prompt) (job.Decision, string) {
			used, allowed := d.rules.Allow(rule.OfSession(one.Approval), one.Session)
			if !allowed {
				return "", ""
			}
			return job.Allow, job.ByRule + used.ID
		},
		Rules: d.rules,
		Now:   d.opts.Now, Log: d.opts.Log,
	})
	d.rules.OnTakenBack(func(id string) rules.Undone { // a prompt's answer goes out as it is given
		return rules.Undone{Handed: rules.Handed(d.prompts.Approvals(), id)}
	})
	d.broker.Prompt(d.prompts)
}

// startJobs takes up the delegated jobs, also where the owner allows no more of them:
// what came of those that there were is told all the same. A registry that this build
// must not touch keeps nobody from their mail.
func (d *Daemon) startJobs(context.Context) (err error) {
	if d.opts.RunJob == nil {
		return nil
	}
	d.git = openGit(d)
	d.jobs, err = jobs.Open(jobs.Options{
		Settings: func() (config.Jobs, error) {
			settings, err := d.opts.Home.Settings(d.opts.Getenv)
			return settings.Jobs, cmp.Or(err, settings.Jobs.Problem())
		},
		Home: d.opts.Home, Broker: d.broker, Transcripts: d.db, Start: d.opts.RunJob, Git: d.git, Hold: d.older.JSON > 0, Now: d.opts.Now, Log: d.opts.Log,
		ArchiveAge: d.maintenance().ArchiveAge,
		Agents:     &models.Book{Settings: func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) }, Where: lookup(d, ""), Now: d.opts.Now},
		Rules:      d.rules, CheckFolder: config.ReservedFolders(d.opts.Home, d.opts.Getenv).Check,
	})
	if err != nil {
		d.jobs = nil
		d.opts.Log.Error("delegated jobs are not served", "err", err)
		return nil
	}
	d.rules.OnTakenBack(d.jobs.TookBack)
	d.broker.Delegate(d.jobs)
	d.jobs.Run()
	return nil
}

// startPeering takes up the links with other PCs, as far as the owner wants them. A
// list of pairs that cannot be read keeps nobody from their mail.
func (d *Daemon) startPeering(context.Context) (err error) {
	d.peering, err = pairing.Open(pairing.Options{
		Home: d.opts.Home, Release: d.opts.Version, Now: d.opts.Now, Log: d.opts.Log,
		Settings: d.network, Forget: forget(d.opts.Home), Capabilities: d.capabilities(), Serve: d.serveFrame, ServeStored: storedFor(d), Changed: peersChanged(d),
	})
	if err != nil {
		d.peering = nil
		d.opts.Log.Error("other PCs are not reached", "err", err)
		return nil
	}
	d.frames = map[string]func(remote.PC, remote.Frame){}
	d.serveJobs()
	if d.files = startFiles(d); d.files != nil {
		d.frames[remote.FilesFrameType] = d.files.Take
	}
	d.sharing = startSharing(d)
	for _, frameType := range sharing.FrameTypes() {
		d.frames[frameType] = d.sharing.Take
	}
	d.broker.Reach(network{d.peering, d.files, d.sharing, func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) }})
	d.peering.Run()
	return nil
}

// queue finds codex's queue command as the settings say now.
func (d *Daemon) queue() (agent.Queue, error) {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		return agent.Queue{}, err
	}
	where := lookup(d, settings.Bin(bridge.Codex))
	path, err := agent.Locate(bridge.Codex, where)
	queue := agent.Queue{Bin: path}
	if where.Environ != nil {
		queue.Environ = where.Environ()
		if folder := d.opts.Getenv("CODEX_HOME"); folder != "" {
			queue.Environ = append(queue.Environ, "CODEX_HOME="+folder) // where its sessions are looked for
		}
	}
	return queue, err
}

// lookup says where programs are found: by the PATH of the owner's terminal, for all that
// a broker starts (RWM-07). configured is the program of the settings.
func lookup(d *Daemon, configured string) agent.Lookup {
	where := agent.Lookup{Env: d.opts.Getenv, Configured: configured}
	if d.opts.Terminal != nil {
		where.Environ, where.Refresh = d.opts.Terminal.Environ, d.opts.Terminal.Refresh
	}
	return where
}

// openGit finds git, by the PATH of this process first: that has the system's, and a start
// does not wait for the login shell. It is nil where there is none; what needs git says so.
func openGit(d *Daemon) *gitwork.Git {
	options := gitwork.Options{
		Environ: os.Environ(), Sandbox: d.opts.Sandbox, Home: d.opts.Home.Dir(),
		Say: func(sentence string) { d.opts.Log.Warn("a snapshot of a job's files is not whole", "why", sentence) },
	}
	git, err := gitwork.Open(options)
	if err != nil && d.opts.Terminal != nil {
		options.Environ = d.opts.Terminal.Environ()
		git, err = gitwork.Open(options)
	}
	if err != nil {
		return nil
	}
	return git
}

// cli finds the agent CLI of a kind as the settings say now, and its version. One
// that is the same file as before is not started again.
func (d *Daemon) cli(ctx context.Context, kind bridge.AgentKind) (agent.Found, error) {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		return agent.Found{}, err
	}
	return d.clis.Detect(ctx, kind, lookup(d, settings.Bin(kind)))
}

func (d *Daemon) startDashboard(context.Context) error {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		return err
	}
	delegated, jobOf := delegatedJobs(d)
	peers, lists := linked(d)
	var asked needsview.Questions
	if d.questions != nil {
		asked = d.questions
	}
	d.pages = dashboard.New(dashboard.Options{
		Prompts:         d.prompts,
		NetworkSettings: config.File{Home: d.opts.Home},
		Secret:          d.opts.Home.LaunchSecret,
		Browsers:        config.BrowsersFile{Home: d.opts.Home},
		Tickets:         d.tickets,
		Reader:          func(context.Context) (dashboard.Reader, error) { return d.db, nil },
		Broker:          d.broker,
		Jobs:            delegated,
		JobOf:           jobOf,
		UserOf:          sandbox.SameUser,
		Peering:         peers,
		NetworkLists:    lists,
		Agents:          d.agents(),
		Storage:         d.maintenance().Doctor(),
		Maintenance:     d.maintenance,
		Settings:        d.opts.Home,
		PutAway:         config.NeedsFile{Home: d.opts.Home},
		Questions:       asked,
		Rules:           d.rules,
		OpenLink:        d.opts.OpenLink,
		Login:           d.opts.Login,
		Page:            d.opts.Page,
		Name:            instanceName(settings),
		Version:         d.opts.Version,
		Home:            d.opts.Home.Dir(),
		MaxHops:         settings.MaxHops,
		Now:             d.opts.Now,
		Log:             d.opts.Log,
	})
	d.broker.Needs(d.pages.Needs)
	d.http = &http.Server{
		Handler:           d.pages,
		ConnContext:       d.pages.ConnContext,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(d.opts.Log.Handler(), slog.LevelWarn),
	}
	d.tasks.Go(func() {
		if err := d.http.Serve(d.web); !errors.Is(err, http.ErrServerClosed) {
			d.opts.Log.Error("the dashboard stopped", "err", err)
		}
	})
	return nil
}

func (d *Daemon) agents() connect.Agents {
	agents := d.opts.Agents
	agents.Home, agents.Getenv, agents.Where = d.opts.Home, d.opts.Getenv, lookup(d, "")
	return agents
}

// instanceName is the configured name of this PC's bridge, else the computer's.
func instanceName(settings config.Settings) string {
	if settings.Name != "" {
		return settings.Name
	}
	name, err := os.Hostname()
	if err != nil {
		return "this PC"
	}
	return name
}

func (d *Daemon) startLink(context.Context) error {
	token, err := d.opts.Home.Token()
	if err != nil {
		return err
	}
	if err := d.opts.Home.CheckSocket(); err != nil {
		return err
	}
	d.socket, err = ipc.Listen(d.opts.Home.Socket())
	if err != nil {
		return err
	}
	d.link = ipc.NewServer(string(token), kindsHandler{d.broker, &installed{find: func() []bridge.AgentKind { return findKinds(d) }, now: d.opts.Now}}, d.opts.Log)
	d.tasks.Go(func() {
		if err := d.link.Serve(d.socket); err != nil {
			d.opts.Log.Error("the local link stopped", "err", err)
		}
	})
	return nil
}

// URL is the dashboard's address, without its key.
func (d *Daemon) URL() string { return "http://" + d.web.Addr().String() }

// Done is closed when the daemon wants to end by itself: it was asked to make
// room, or nothing needs it any more. The caller then calls Close.
func (d *Daemon) Done() <-chan struct{} { return d.retired }

// expireLoop moves old mail to the archive, at the start and from then on.
func (d *Daemon) expireLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-d.tasks.Done():
			return
		}
		if _, err := d.broker.Expire(d.tasks.Context()); err != nil && !d.tasks.HasEnded() {
			d.opts.Log.Error("old mail could not be moved to the archive", "err", err)
		}
		settings, err := d.opts.Home.Settings(d.opts.Getenv)
		if err != nil {
			settings = config.FallbackSettings(d.opts.Getenv)
		}
		timer.Reset(expireRest(settings))
	}
}

// expireRest is how long old mail may go unnoticed: a minute, and a quarter of
// an age that the owner set shorter, so that mail is not handed over at twice
// its age (MSG-12).
func expireRest(settings config.Settings) time.Duration {
	const shortest, longest = time.Second, time.Minute
	rest := longest
	for _, age := range []time.Duration{settings.MessageTTL, settings.QueuedMailMaxAge} {
		if age > 0 {
			rest = min(rest, age/4)
		}
	}
	return max(rest, shortest)
}

// idleLoop ends a background broker that nothing needs (MSG-01).
func (d *Daemon) idleLoop() {
	const looks = 10 // per idle time
	ticker := time.NewTicker(d.opts.IdleExit / looks)
	defer ticker.Stop()
	idle := 0
	for {
		select {
		case <-ticker.C:
		case <-d.tasks.Done():
			return
		}
		if d.broker.Busy() || d.pages.Watched() || d.files != nil && d.files.Busy() {
			idle = 0
			continue
		}
		if idle++; idle > looks {
			d.once.Do(func() { close(d.retired) })
			return
		}
	}
}

// Close ends everything in order: no new requests, then the running ones, then
// the store, and the lock last, so that the next broker finds a finished store.
func (d *Daemon) Close() error {
	d.tasks.Cancel()
	var problems []error
	if d.socket != nil {
		problems = append(problems, d.socket.Close())
	}
	if d.link != nil {
		d.link.Close()
	}
	if d.pages != nil {
		problems = append(problems, d.pages.Close())
	}
	switch {
	case d.http != nil:
		problems = append(problems, d.http.Close())
	case d.web != nil:
		problems = append(problems, d.web.Close())
	}
	d.tasks.Wait()
	if d.peering != nil {
		d.peering.Close()
	}
	if d.executor != nil {
		d.requester.Close()
		d.executor.Close()
	}
	if d.sharing != nil {
		d.sharing.Close()
	}
	if d.files != nil {
		d.files.Close()
	}
	if d.jobs != nil {
		d.jobs.Close()
	}
	if d.broker != nil {
		d.broker.Close()
	}
	if d.questions != nil {
		problems = append(problems, d.questions.Close())
	}
	if d.db != nil {
		problems = append(problems, d.db.Close())
	}
	if d.lease != nil {
		problems = append(problems, d.lease.Release())
	}
	if d.lock != nil {
		problems = append(problems, d.lock.Release())
	}
	return errors.Join(problems...)
}
