package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/provision"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/sqlitex"
)

// Options configures a [Server].
type Options struct {
	Home     Home
	Settings Settings
	Now      func() time.Time
	Log      *slog.Logger
	// FloodEvery is how often floods are checked; 0 means once a second.
	FloodEvery time.Duration
	// AwayAfter is how long a PC may be without a connection before the team is informed;
	// 0 means ten seconds.
	AwayAfter time.Duration
	// KeepFree is how many bytes of the disk stay free: below that, the hub stores
	// nothing; 0 means 64 MiB.
	KeepFree int64
	// RoomEvery is how often the free space is checked; 0 means four times a second.
	RoomEvery time.Duration
	// StatusWait is the timeout of each stream's part of the hub's status; 0 means three
	// seconds.
	StatusWait time.Duration
}

// Server is one running node of a hub.
type Server struct {
	opts   Options
	keys   keys
	lock   *sqlitex.Lock
	engine *natsserver.Server
	roster *roster
	room   *room
	// refusals queues refusals for counting and publishing.
	refusals refusals
	conn     *nats.Conn // the hub's connection to the team's account, within this process
	js       jetstream.JetStream
	own      *nats.Conn         // the connection to the registry's account
	pcs      jetstream.KeyValue // the registry
	door     *link.Listener
	since    time.Time

	enrolling sync.Mutex // held while one PC enrols

	mu            sync.Mutex
	invitation    *link.Invitation
	announcements map[string]words // announcements to the team, by PC id

	tasks   *lifecycle.Tasks
	closing sync.Once
}

const (
	startTimeout     = 30 * time.Second
	maxSubscriptions = 256 // of one connection
)

// Open starts the hub of a home and returns when PCs can connect. A three-node hub first waits
// for a second node. Open fails with Invalid for bad settings, with Conflict if a hub runs in
// that home, and with Unavailable if the port cannot be opened. It fails with Storage if the
// store cannot be used.
func Open(ctx context.Context, opts Options) (*Server, error) {
	if opts.FloodEvery == 0 {
		opts.FloodEvery = floodEvery
	}
	if opts.AwayAfter == 0 {
		opts.AwayAfter = awayAfter
	}
	if opts.KeepFree == 0 {
		opts.KeepFree = keepFree
	}
	if opts.RoomEvery == 0 {
		opts.RoomEvery = roomEvery
	}
	if opts.StatusWait == 0 {
		opts.StatusWait = engineTimeout
	}
	if err := opts.Settings.check(); err != nil {
		return nil, err
	}
	lock, err := opts.Home.acquire(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, lock: lock, since: opts.Now(), announcements: map[string]words{}, refusals: make(refusals, 256)}
	s.room = &room{s: s}
	s.tasks = lifecycle.NewTasks(ctx)
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	home := s.opts.Home
	if err := home.save(s.opts.Settings); err != nil {
		return err
	}
	if s.keys, err = home.openKeys(); err != nil {
		return err
	}
	if err := disk.MakeDir(home.store()); err != nil {
		return err
	}
	s.roster = newRoster(s.opts.Settings.Team, s.keys.adminKey, s.opts.Log, s.running)
	if err := s.startEngine(); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.open(ctx)
}

func (s *Server) running() *natsserver.Server { return s.engine }

// engineOptions returns the configuration of the NATS server.
func (s *Server) engineOptions() (*natsserver.Options, error) {
	set := s.opts.Settings
	o := &natsserver.Options{}
	if err := o.ProcessConfigString(fmt.Sprintf("accounts { %q { jetstream: enabled }, %s { jetstream: enabled } }", set.Team, registryAccount)); err != nil {
		return nil, err
	}
	o.ServerName, o.Host, o.Port = set.Node, set.Listen, set.NATSPort
	if o.Host == "" {
		o.Host = "0.0.0.0"
	}
	if o.Port == 0 {
		o.Port = natsserver.RANDOM_PORT
	}
	// The client port opens once the members are known. In a cluster the engine opens all
	// ports together, and early clients wait in the roster.
	o.DontListen = set.Cluster == ""
	o.NoSigs = true
	o.JetStream, o.StoreDir, o.SyncAlways = true, s.opts.Home.store(), true
	o.JetStreamMaxStore, o.JetStreamMaxMemory = set.MaxBytes, 256<<20
	o.DisableJetStreamBanner = true
	o.MaxPayload = subject.MaxPayloadBytes
	o.MaxConn, o.MaxSubs = mostConnections, maxSubscriptions
	o.AlwaysEnableNonce, o.CustomClientAuthentication = true, s.roster
	o.TLSConfig, o.TLS, o.TLSHandshakeFirst, o.TLSTimeout, o.AuthTimeout = s.keys.identity.ServerConfig(), true, true, 5, 5
	o.PingInterval, o.MaxPingsOut = 15*time.Second, 2
	o.WriteDeadline = 10 * time.Second
	if set.Cluster != "" {
		if err := s.cluster(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// startEngine starts NATS, without its client port.
func (s *Server) startEngine() error {
	o, err := s.engineOptions()
	if err != nil {
		return err
	}
	if s.engine, err = natsserver.NewServer(o); err != nil {
		return bridge.WithCause(bridge.Unavailable, err, fmt.Sprintf("NATS cannot start: %v", err))
	}
	s.engine.SetLoggerV2(engineLog{log: s.opts.Log, named: s.roster.named, refused: s.refusals.note, failed: s.room.hear}, true, false, false)
	s.engine.Start()
	if !s.engine.JetStreamEnabled() {
		return bridge.Errorf(bridge.Storage, "NATS cannot use its store in %s: %s has the reason", s.opts.Home.store(), s.opts.Home.Log())
	}
	return nil
}

// login returns the login option of the hub's own key.
func (k keys) login() nats.Option {
	return nats.Nkey(k.adminKey, func(nonce []byte) ([]byte, error) { return k.admin.Sign(nonce) })
}

// prepare creates what the team's account needs and reads the members of the team.
func (s *Server) prepare(ctx context.Context) (err error) {
	var registry jetstream.JetStream
	if s.conn, s.js, err = s.connect(teamLogin); err == nil {
		s.own, registry, err = s.connect(registryLogin)
	}
	if err != nil {
		return bridge.WithCause(bridge.Internal, err, fmt.Sprintf("the hub cannot talk to its own NATS: %v", err))
	}
	for before := ""; ; {
		if err = s.settle(ctx, registry); err == nil || ctx.Err() != nil || s.opts.Settings.Cluster == "" {
			return err
		}
		if err.Error() != before {
			before = err.Error()
			s.opts.Log.Info("waiting for another node of the hub", "err", err)
		}
		select {
		case <-time.After(settleEvery):
		case <-ctx.Done():
		}
	}
}

// settle makes one attempt of prepare.
func (s *Server) settle(ctx context.Context, registry jetstream.JetStream) error {
	err := s.opts.Settings.elected(s.engine)
	if err == nil {
		err = s.team().Make(ctx, s.opts.Settings.once)
	}
	if err == nil {
		err = s.makeRegistry(ctx, registry)
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the team's streams cannot be made: %v", err))
	}
	return s.learn(ctx)
}

// team returns the team's part of the engine.
func (s *Server) team() provision.Engine {
	set := s.opts.Settings
	return provision.Engine{JS: s.js, Team: set.Team, MaxBytes: set.MaxBytes, Replicas: set.replicas()}
}

func (s *Server) makeRegistry(ctx context.Context, registry jetstream.JetStream) (err error) {
	return s.opts.Settings.once(ctx, func(ctx context.Context) error {
		s.pcs, err = registry.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: registryBucket, Storage: jetstream.FileStorage, Replicas: s.opts.Settings.replicas(), MaxBytes: s.opts.Settings.MaxBytes / 32,
		})
		return err
	})
}

func (s *Server) connect(login string) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := nats.Connect("", nats.InProcessServer(s.engine), s.keys.login(), nats.Name(login), nats.MaxReconnects(-1), nats.Timeout(startTimeout))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	return conn, js, err
}

// learn reads the registry and follows it from then on.
func (s *Server) learn(ctx context.Context) (err error) {
	life, end := context.WithCancel(s.tasks.Context())
	defer func() {
		if err != nil {
			end()
		}
	}()
	watch, err := s.pcs.WatchAll(life)
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the hub's registry cannot be read: %v", err))
	}
	s.tasks.Go(func() { <-life.Done(); _ = watch.Stop() })
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	for {
		select {
		case entry, more := <-watch.Updates():
			if !more {
				return bridge.Errorf(bridge.Storage, "the hub's registry cannot be read")
			}
			if entry == nil { // that was the present content
				s.tasks.Go(func() { s.follow(life, watch) })
				if err := s.mendInboxes(ctx); err != nil {
					return err
				}
				return s.mendRoster(ctx)
			}
			s.apply(entry)
		case <-late.C:
			return bridge.Errorf(bridge.Unavailable, "the hub's registry does not come")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) follow(life context.Context, watch jetstream.KeyWatcher) {
	for {
		select {
		case entry, more := <-watch.Updates():
			if !more {
				return
			}
			if entry != nil {
				s.apply(entry)
			}
		case <-life.Done():
			return
		}
	}
}

// apply applies one entry of the registry.
func (s *Server) apply(entry jetstream.KeyValueEntry) {
	var pc PC
	if entry.Operation() != jetstream.KeyValuePut {
		s.roster.drop(entry.Key())
		return
	}
	if err := json.Unmarshal(entry.Value(), &pc); err != nil || pc.ID != entry.Key() || subject.CheckPC(pc.ID) != nil || !nkeys.IsValidPublicUserKey(pc.Key) {
		s.opts.Log.Error("an entry of the registry cannot be read and is ignored", "key", entry.Key())
		s.roster.drop(entry.Key())
		return
	}
	s.roster.put(pc)
}

// mendInboxes creates missing consumers, usually after a crash during an enrolment, and
// updates those of an older hub.
func (s *Server) mendInboxes(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, subject.MessageStream(s.opts.Settings.Team))
	if err != nil {
		return err
	}
	existing := map[string]jetstream.ConsumerConfig{}
	consumers := stream.ListConsumers(ctx)
	for consumer := range consumers.Info() {
		existing[consumer.Name] = consumer.Config
	}
	if err := consumers.Err(); err != nil {
		return err
	}
	for _, pc := range s.roster.list() {
		if is, made := existing[subject.Consumer(pc.ID)]; !made || !provision.IsInbox(is, s.opts.Settings.Team, pc.ID) {
			if err := s.team().MakeInbox(ctx, pc.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the hub to PCs, and to administrators from its home.
func (s *Server) open(ctx context.Context) error {
	set := s.opts.Settings
	s.room.look(ctx)
	err := showBoard(ctx, s)
	if err == nil {
		err = hearWords(s)
	}
	if err == nil {
		err = s.serveControl()
	}
	if err != nil {
		return err
	}
	close(s.roster.known)
	if set.Cluster == "" {
		listening := make(chan struct{})
		s.tasks.Go(func() { s.engine.AcceptLoop(listening) })
		<-listening
	}
	if s.engine.Addr() == nil {
		return bridge.Errorf(bridge.Unavailable, "port %d of %q cannot be opened: another program may have it", set.NATSPort, set.Listen)
	}
	s.door, err = link.Listen(ctx, s.keys.identity, []string{set.Listen}, set.Port, link.Doors{
		Hub:        true,
		Known:      func(string) error { return bridge.Errorf(bridge.Unauthorized, "a hub has no links") },
		Linked:     func(conn *tls.Conn, _ string) { _ = conn.Close() },
		Invitation: s.openInvitation,
		Joining:    s.joining,
	}, s.opts.Log)
	if err != nil {
		return err
	}
	s.tasks.Go(func() { s.room.watch(s.tasks.Context()) })
	s.tasks.Go(func() { s.watchFloods(s.tasks.Context()) })
	s.tasks.Go(func() { s.watchLeft(s.tasks.Context()) })
	s.tasks.Go(func() { countRefusals(s.tasks.Context(), s) })
	running := Running{PID: os.Getpid(), Addresses: s.door.Addresses(), NATS: s.localURL()}
	return disk.WriteJSON(s.opts.Home.running(), running)
}

// NATSPort returns the port where PCs connect to NATS.
func (s *Server) NATSPort() int {
	return s.engine.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it listens on tcp
}

func (s *Server) localURL() string {
	host := s.opts.Settings.Listen
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "tls://" + net.JoinHostPort(host, strconv.Itoa(s.NATSPort()))
}

// Addresses returns the addresses where PCs enrol.
func (s *Server) Addresses() []string { return s.door.Addresses() }

// ID returns the identity that the hub's PCs pin.
func (s *Server) ID() string { return s.keys.identity.ID }

// Done returns a channel that is closed when the engine has ended, for any reason.
func (s *Server) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() { s.engine.WaitForShutdown(); close(done) }()
	return done
}

// Close ends the hub. Acknowledged data is on the disk already.
func (s *Server) Close() { s.closing.Do(s.close) }

func (s *Server) close() {
	s.tasks.Cancel()
	if s.door != nil {
		s.door.Close()
	}
	for _, conn := range []*nats.Conn{s.conn, s.own} {
		if conn != nil {
			conn.Close()
		}
	}
	if s.engine != nil {
		s.engine.Shutdown()
		s.engine.WaitForShutdown()
	}
	s.tasks.Wait()
	if err := s.lock.Release(); err != nil {
		s.opts.Log.Error("the hub's lock could not be given up", "err", err)
	}
}

// openInvitation returns the last invitation; nil for none.
func (s *Server) openInvitation() *link.Invitation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invitation
}

// joining serves a PC that enrols with a code.
func (s *Server) joining(conn *tls.Conn, invitation *link.Invitation) {
	pc, err := join.Serve(conn, s.keys.identity, s.opts.Settings.Team, invitation, s.accept)
	if err != nil {
		s.opts.Log.Warn("a PC could not join", "from", conn.RemoteAddr(), "err", err)
		return
	}
	s.opts.Log.Info("a PC joined the team", "pc", pc.Name, "id", pc.ID)
}

// accept enrols a PC. Before the PC gets the answer, it has an inbox, is in the registry,
// and is announced to the team.
func (s *Server) accept(asks join.PC) (join.Answer, error) {
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	if err := s.roster.judge(asks); err != nil {
		return join.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(s.tasks.Context(), startTimeout)
	defer cancel()
	pc := PC{ID: asks.ID, Name: asks.Name, Key: asks.Key, EnrolledAt: s.opts.Now().UnixMilli(), Box: asks.Box}
	err := s.team().MakeInbox(ctx, pc.ID)
	if err == nil {
		err = record(ctx, s, pc)
	}
	if err != nil {
		s.opts.Log.Error("a PC could not be recorded", "pc", pc.Name, "err", err)
		return join.Answer{}, bridge.Errorf(bridge.Storage, "the hub could not record this PC: its log has the reason")
	}
	s.roster.put(pc) // the registry's update follows, but the PC may be faster
	if before := s.roster.before(pc); before != nil {
		s.opts.Log.Warn("a PC joined under the name of another one that was removed", "pc", pc.Name, "id", pc.ID, "removed", before.ID)
	}
	return join.Answer{Team: s.opts.Settings.Team, Name: pc.Name, URLs: s.opts.Settings.URLs, Port: s.NATSPort()}, nil
}

// record stores a PC in the registry and announces it to the team.
func record(ctx context.Context, s *Server, pc PC) error {
	value, err := json.Marshal(pc)
	if err == nil {
		_, err = s.pcs.Put(ctx, pc.ID, value)
	}
	if err == nil {
		err = s.announce(ctx, pc.ID, pc.member())
	}
	return err
}

// remove ends a PC's membership at once (HUB-03). It also deletes the PC's untaken
// messages and those that wait for it; their senders still have them. With wish, the PC
// receives the announcement before its connection ends.
func (s *Server) remove(ctx context.Context, text string, wish bool) (PC, error) {
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	pc, err := s.roster.find(text)
	if err != nil {
		return PC{}, err
	}
	if err := s.pcs.Delete(ctx, pc.ID); err != nil {
		return PC{}, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s could not be removed and still belongs to the team: %v", pc.Name, err))
	}
	if !wish {
		s.roster.drop(pc.ID)
	}
	err = s.announce(ctx, pc.ID, subject.Member{Name: pc.Name, Removed: true})
	s.roster.drop(pc.ID)
	if err != nil {
		return pc, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s is removed, but the team could not be told: %v", pc.Name, err))
	}
	if err := s.team().Forget(ctx, pc.ID); err != nil {
		return pc, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s is removed, but what it had sent may still arrive: %v", pc.Name, err))
	}
	return pc, nil
}
