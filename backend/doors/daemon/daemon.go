// Package daemon assembles a running bridge: election lock, store, broker, local
// link and dashboard, started and stopped in order. `bridge serve` and the desktop
// app run it; no other package assembles these parts.
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
	"bridge/backend/agent/kinds"
	"bridge/backend/agent/models"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/remote"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard"
	"bridge/backend/doors/dashboard/dto"
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

// Options configures a daemon. All fields are required unless they say otherwise.
type Options struct {
	Home    config.Home
	Getenv  func(string) string
	Host    string // serve, background, desktop or service
	Port    *int   // dashboard port; nil for the configured one
	Page    fs.FS  // the built page
	Version string
	// Agents lets the dashboard connect the agent CLIs of this computer. The zero
	// value means those of Home, connected to this very program.
	Agents connect.Agents
	// OpenLink opens a link in the owner's browser; nil without one.
	OpenLink func(ctx context.Context, link string) error
	// Login lets the dashboard switch the desktop app's start at login; nil if
	// another program runs.
	Login dashboard.Login
	// BackUpMessages starts a low-priority process that makes one message backup;
	// done closes at its end. It is called if the settings want it; nil
	// disables automatic backups.
	BackUpMessages func() (done <-chan struct{}, err error)
	// Prove tries the routes into new versions of agents; nil tries none.
	Prove *Prover
	// RunJob starts the runner of the job in folder, independent of this process,
	// and returns its process id; nil disables delegated jobs.
	RunJob func(folder string) (pid int, err error)
	// Terminal is the environment of the owner's new terminals, for finding
	// programs and querying agents' CLIs; nil for the environment of this process.
	Terminal *shellenv.Terminal
	// Sandbox is the command that calls sandbox.Main: git runs in that sandbox in
	// jobs' repositories. It is empty on systems without a sandbox.
	Sandbox []string
	// IdleExit ends a daemon that was unused for so long; 0 never does.
	IdleExit time.Duration
	// Replace means that the owner allows an empty store to replace a lost one
	// (STO-17).
	Replace bool
	Now     func() time.Time
	Log     *slog.Logger
}

// Daemon is a running bridge.
type Daemon struct {
	opts      Options
	lock      *sqlitex.Lock
	lease     *lease.Lease
	older     lease.Older // programs that ran at the start
	has       bool        // the home had a store at the start
	lostStore string      // where the rest of a lost store is; "" if none was replaced
	db        *store.DB
	broker    *broker.Broker
	questions *questions.Questions // nil if questions.db is unusable
	prompts   *prompts.Prompts
	rules     *rules.Rules
	jobs      *jobs.Jobs                               // nil without delegated jobs
	peering   *pairing.Peering                         // nil if the pairs are unreadable
	executor  *remotejobs.Executor                     // nil without jobs
	requester *remotejobs.Requester                    // nil without jobs
	frames    map[string]func(remote.PC, remote.Frame) // handlers by frame type; set before links start
	files     *files.Transfers                         // nil without other PCs
	sharing   *sharing.Sharing                         // nil as peering
	git       *gitwork.Git                             // nil without git on this PC
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

// startSteps are the start steps in order. The port is tried before the home is
// changed and before another broker is asked to retire. The socket is opened last,
// when requests can be served.
var startSteps = []func(*Daemon, context.Context) error{
	(*Daemon).readSettings,
	(*Daemon).checkStore,
	(*Daemon).tryPort,
	(*Daemon).elect,
	(*Daemon).bindPort,
	(*Daemon).replaceStore,
	(*Daemon).register,
	(*Daemon).findOlderPrograms,
	(*Daemon).openStore,
	openRules,
	(*Daemon).startBroker,
	startQuestions,
	(*Daemon).startJobs,
	(*Daemon).startPeering,
	(*Daemon).startDashboard,
	(*Daemon).startLink,
}

// Start returns a running daemon. If a step fails, Start closes everything that
// earlier steps opened and returns the error of that step.
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

// Check fails, with one sentence, if a broker could not serve this home: settings
// or a store that this build must not touch, maintenance, a lost store, or a disk
// that refuses writes (Storage). It changes nothing.
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
	if err := check.VerifyStart(ctx, home); err != nil {
		return err
	}
	reader, err := store.OpenReader(ctx, home.DB())
	switch {
	case err == nil:
		err = reader.Close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil // the start will make it
	}
	if err != nil {
		return err
	}
	if err := disk.TryWrite(home.Dir()); err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the home folder %s cannot be written: %s", home.Dir(), disk.Reason(err)))
	}
	return nil
}

// readSettings fails for unreadable settings before any change.
func (d *Daemon) readSettings(context.Context) error {
	_, err := d.opts.Home.Settings(d.opts.Getenv)
	return err
}

// checkStore fails for a home with a lost store, before any change and before another
// broker is asked to retire. The leases that reveal a loss are cleared by the next
// process that registers. It fails with Denied if Replace is set and nothing is lost, and
// with Storage for a store that a start cannot read.
func (d *Daemon) checkStore(ctx context.Context) (err error) {
	d.has, err = check.HasStore(ctx, d.opts.Home)
	if err == nil && d.has {
		err = check.VerifyStart(ctx, d.opts.Home)
	}
	switch {
	case !d.opts.Replace:
		return err
	case errors.Is(err, check.ErrLost):
		return nil
	case d.has:
		return bridge.Errorf(bridge.Denied, "nothing is lost: %s is there, and stays; `bridge serve` without --new-store serves it", d.opts.Home.DB())
	}
	d.opts.Replace = false // a home without an earlier store loses nothing
	return err
}

// replaceStore makes room for an empty store, now that no other broker can start.
func (d *Daemon) replaceStore(ctx context.Context) (err error) {
	if !d.opts.Replace {
		return nil
	}
	if d.lostStore, err = d.maintenance().Restores().Replace(ctx); err == nil {
		d.opts.Log.Warn("the home's store was lost; its owner begins with an empty one", "kept", d.lostStore)
	}
	return err
}

// RemainsPath returns where the rest of a lost store is, or "" if none was replaced.
func (d *Daemon) RemainsPath() string { return d.lostStore }

// tryPort takes the dashboard's loopback port before anything else, so that a used
// port changes nothing. If this home's own broker has the port, elect handles it:
// it retires that broker, or reports it. Background brokers take no port before the
// election: otherwise the losers of many would keep the winner from the port.
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

// bindPort takes the port, unless tryPort did. A background broker falls back to a free port,
// because sessions must not wait for a port. It fails with Conflict if the port is in use.
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

// elect takes the lock that makes this the only broker of the home (MSG-01). It
// asks a background broker that holds the lock to retire.
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
	_, err = d.opts.Home.Token() // a damaged token must be known before the store is touched
	return err
}

// takeOverPatience is the timeout for the current broker to finish, or to become
// reachable.
const takeOverPatience = 10 * time.Second

const takeOverPause = 20 * time.Millisecond

// takeOver replaces a background broker after asking it to retire, and also one
// that a session starts right after that. If the lock holder is unreachable, it is
// ending or starting, so takeOver retries. It fails with Conflict if the holder
// stays.
func (d *Daemon) takeOver(ctx context.Context) (*sqlitex.Lock, error) {
	if d.opts.Host == broker.HostBackground {
		return nil, bridge.Errorf(bridge.Conflict, "another broker already serves this home")
	}
	ctx, cancel := context.WithTimeout(ctx, takeOverPatience)
	defer cancel()
	var client *ipc.Client // a broker asked to retire that still runs
	defer func() { drop(client) }()
	for {
		lock, err := sqlitex.AcquireLock(ctx, d.opts.Home.BrokerLock())
		if !errors.Is(err, sqlitex.ErrLocked) {
			return lock, err
		}
		if client == nil {
			if client, err = d.askToRetire(ctx); err != nil {
				return nil, err
			}
		} else if isClosed(client.Done()) {
			drop(client)
			client = nil // another broker has the home meanwhile
		}
		switch {
		case ipc.Pause(ctx, takeOverPause):
		case client != nil:
			return nil, bridge.Errorf(bridge.Conflict, "another broker serves this home and did not make room")
		default:
			return nil, bridge.Errorf(bridge.Conflict, "another broker holds this home but does not answer")
		}
	}
}

// drop closes a connection, if there is one. The process at its other end ends.
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

// askToRetire asks the home's broker to retire. The connection lasts as long as
// that broker; it is nil if none was reachable.
func (d *Daemon) askToRetire(ctx context.Context) (running *ipc.Client, err error) {
	client, err := d.dialBroker(ctx, 0)
	switch {
	case errors.Is(err, ipc.ErrSilent):
		return nil, bridge.WithCause(bridge.Conflict, err, "another broker holds this home: "+err.Error())
	case bridge.CodeOf(err) == bridge.Unavailable, bridge.CodeOf(err) == bridge.NotFound: // NotFound: it is still creating the token
		return nil, nil
	case err != nil:
		return nil, bridge.WithCause(bridge.Conflict, err, "another broker holds this home but does not answer")
	}
	if err := client.Retire(ctx); err != nil && bridge.CodeOf(err) != bridge.Unavailable { // the broker may be gone before its answer is sent
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// dialBroker connects to the broker that serves this home, or starts to within
// patience. It creates nothing in the home.
func (d *Daemon) dialBroker(ctx context.Context, patience time.Duration) (*ipc.Client, error) {
	token, err := d.opts.Home.ExistingToken()
	if err != nil {
		return nil, err
	}
	target := ipc.Target{Socket: d.opts.Home.Socket(), Token: string(token)}
	return ipc.DialPatiently(ctx, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: d.opts.Version}, patience)
}

// maintenance returns the home's maintenance with the current settings. Damaged
// settings are a finding of the report; the work then uses the variables.
func (d *Daemon) maintenance() maintain.Maintenance {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		settings = config.FallbackSettings(d.opts.Getenv)
	}
	m := maintain.New(d.opts.Home, "the broker ("+d.opts.Host+")", settings, d.opts.Now)
	m.InBroker = true
	return m
}

// register takes a lease as a writer, so that maintenance stays away meanwhile
// (STO-09). It fails while maintenance has the home.
func (d *Daemon) register(context.Context) (err error) {
	d.lease, err = d.maintenance().Worker().Register()
	return err
}

// findOlderPrograms finds the older programs of the home, once for this daemon's life:
// the next daemon notices their end. Without any, it applies the writes that waited
// for that (VER-05).
func (d *Daemon) findOlderPrograms(context.Context) (err error) {
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

// openStore opens the store. While older programs of the home run, it keeps the
// store's schema (VER-04).
func (d *Daemon) openStore(ctx context.Context) error {
	db, err := store.Open(ctx, d.opts.Home.DB(), store.Options{
		Now: d.opts.Now, Log: d.opts.Log, Index: d.opts.Home.History(), OldestReader: d.older.Schema, Existing: d.has,
	})
	d.db = db
	if err != nil {
		return err
	}
	return d.lease.RecordStore()
}

func (d *Daemon) startBroker(ctx context.Context) (err error) {
	d.tickets = guard.NewTickets(d.opts.Now)
	known := proofs{d}.open()
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
		Proofs:     known,
		Retire:     func() { d.once.Do(func() { close(d.retired) }) },
	})
	if err != nil {
		return check.ExplainDamage(d.opts.Home, err)
	}
	startPrompts(d)
	d.tasks.Go(func() { known.Run(d.tasks.Context()) })
	return nil
}

// startQuestions starts the sessions' questions to their owner. An unusable
// questions.db does not stop the mail.
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

// openRules opens the owner's standing rules. No session can request anything yet.
func openRules(d *Daemon, _ context.Context) error {
	d.rules = rules.Open(rules.Options{Path: filepath.Join(d.opts.Home.Dir(), config.RulesStore), Now: d.opts.Now, Log: d.opts.Log})
	return nil
}

// startPrompts forwards permission prompts of sessions to their owner, as the
// settings allow.
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
		Rule: func(item prompt.Prompt) (job.Decision, string) {
			used, allowed := d.rules.Allow(rule.OfSession(item.Approval), item.Session)
			if !allowed {
				return "", ""
			}
			return job.Allow, job.ByRule + used.ID
		},
		Rules: d.rules,
		Now:   d.opts.Now, Log: d.opts.Log,
	})
	d.rules.OnTakenBack(func(id string) rules.Undone { // a prompt's answer is delivered when it is given
		return rules.Undone{Handed: rules.Handed(d.prompts.Approvals(), id)}
	})
	d.broker.Prompt(d.prompts)
}

// startJobs starts the delegated jobs, even if the owner allows no new ones: the
// results of existing jobs are still reported. A registry that this build must not
// touch does not stop the mail.
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
		Agents:     &models.Book{Settings: func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) }, Where: lookup(d, ""), Now: d.opts.Now, QueriesOf: kinds.QueriesOf},
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

// startPeering starts the links with other PCs, as the settings allow. An
// unreadable list of pairs does not stop the mail.
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

// queue returns codex's queue command by the current settings.
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
			queue.Environ = append(queue.Environ, "CODEX_HOME="+folder) // where its sessions are searched
		}
	}
	return queue, err
}

// lookup returns how programs are found: by the PATH of the owner's terminal, for
// all that a broker starts (RWM-07). configured is the program of the settings.
func lookup(d *Daemon, configured string) agent.Lookup {
	where := agent.Lookup{Env: d.opts.Getenv, Configured: configured}
	if d.opts.Terminal != nil {
		where.Environ, where.Refresh = d.opts.Terminal.Environ, d.opts.Terminal.Refresh
	}
	return where
}

// openGit finds git, first on this process's PATH, so that the start does not wait
// for the login shell. It is nil without git; its users report that.
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

// cli returns the agent CLI of a kind by the current settings, and its version. It
// does not restart an unchanged file to query it.
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
	var questions needsview.Questions
	if d.questions != nil {
		questions = d.questions
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
		Questions:       questions,
		Rules:           d.rules,
		Exchanges:       d.broker.Exchanges,
		OpenLink:        d.opts.OpenLink,
		Login:           d.opts.Login,
		Page:            d.opts.Page,
		Drafts:          &config.DraftsFile{Home: d.opts.Home, Now: d.opts.Now},
		Instance:        dto.Instance{Name: instanceName(settings), Version: d.opts.Version, Home: d.opts.Home.Dir()},
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

// instanceName returns the configured name of this PC's bridge, or the computer's.
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

// URL returns the dashboard's address without its key.
func (d *Daemon) URL() string { return "http://" + d.web.Addr().String() }

// Done is closed if the daemon wants to end: it was asked to retire, or it is idle.
// The caller then calls Close.
func (d *Daemon) Done() <-chan struct{} { return d.retired }

// expireLoop moves old mail to the archive, at the start and periodically.
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

// expireRest returns how long old mail may stay: a minute, or a quarter of a
// shorter configured age. So no mail is delivered at twice its age (MSG-12).
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

// idleLoop ends an unused background broker (MSG-01).
func (d *Daemon) idleLoop() {
	const looks = 10 // checks per idle time
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

// Close ends everything in order: first new requests, then running ones, then the
// store, and last the lock, so that the next broker finds a complete store.
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
