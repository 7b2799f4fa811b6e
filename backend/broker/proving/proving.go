// Package proving tries the routes into a new version of an agent once, in the background
// (CAN-02). It keeps the results and says what is broken. The work itself is done by a
// child process at the lowest priority.
package proving

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/config"
)

// The times of the service.
const (
	// settle is how long a version is known before it is tried, so that a new session has
	// the processor first, and an agent in the middle of an update is not tried.
	settle = 2 * time.Minute
	// lookEvery is how often the service looks for something to do.
	lookEvery = time.Minute
	// askEvery is how often it asks the connected agents for their versions.
	askEvery = 24 * time.Hour
	// patience is how long a try may take.
	patience = 10 * time.Minute
)

// File keeps the proofs; config.ProofsFile implements it. The service serializes calls.
type File interface {
	Proofs() ([]proof.Proof, error)
	SetProofs(proofs []proof.Proof) error
}

// Options configures a Service. All fields are required.
type Options struct {
	File     File
	Settings func() (config.Settings, error)
	// Kinds are the kinds whose routes can be tried here; none where nothing can be.
	Kinds []bridge.AgentKind
	// Connected returns the kinds that are connected to Bridge.
	Connected func() ([]bridge.AgentKind, error)
	// Version returns the version of a kind's program on this PC, "" if it says none.
	Version func(ctx context.Context, kind bridge.AgentKind) (string, error)
	// Busy reports whether this PC or one of its sessions is at work.
	Busy func(ctx context.Context) bool
	// Run tries the routes of a kind. It fails with the reason if they cannot be tried.
	Run func(ctx context.Context, kind bridge.AgentKind) (proof.Proof, error)
	// Changed invalidates what is shown. It is called without a lock.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
}

// Service keeps the proofs of the agents of this PC. A nil Service knows none.
type Service struct {
	opts     Options
	recorded func() // is called without a lock after each stored proof

	mu        sync.Mutex // guards below, and the file
	proofs    []proof.Proof
	versions  map[bridge.AgentKind]string // the one that each kind last said
	noticed   map[bridge.AgentKind]time.Time
	tried     map[attempt]time.Time   // so that a failed write repeats no try
	unsure    map[attempt]proof.Proof // a first try with a broken route, which waits for the second
	askedLast time.Time
}

// attempt is a version of a kind that was tried.
type attempt struct {
	kind    bridge.AgentKind
	version string
}

// Open returns a service with the stored proofs. Without a readable file there are none.
func Open(opts Options) *Service {
	s := &Service{
		opts: opts, recorded: func() {}, versions: map[bridge.AgentKind]string{}, noticed: map[bridge.AgentKind]time.Time{},
		tried: map[attempt]time.Time{}, unsure: map[attempt]proof.Proof{},
	}
	proofs, err := opts.File.Proofs()
	if err != nil {
		opts.Log.Warn("what is known of the routes into your agents cannot be read", "err", err)
	}
	s.proofs = proofs
	return s
}

// Noticed takes the version that an agent says of itself. A version without a proof is
// tried later, see Run.
func (s *Service) Noticed(kind bridge.AgentKind, version string) {
	if s == nil || version == "" {
		return
	}
	s.mu.Lock()
	isNew := s.versions[kind] != version
	s.versions[kind] = version
	_, waits := s.noticed[kind]
	if due := slices.Contains(s.opts.Kinds, kind) && s.isDueLocked(kind, version); due && (isNew || !waits) {
		s.noticed[kind] = s.opts.Now()
	}
	s.mu.Unlock()
	if isNew {
		s.opts.Changed()
	}
}

func (s *Service) isDueLocked(kind bridge.AgentKind, version string) bool {
	last, tried := s.tried[attempt{kind, version}]
	return proof.IsDue(s.proofs, kind, version, s.opts.Now()) && (!tried || s.opts.Now().Sub(last) >= proof.Retry)
}

// Of returns the proof of exactly that version, and whether there is one.
func (s *Service) Of(kind bridge.AgentKind, version string) (proof.Proof, bool) {
	if s == nil || version == "" {
		return proof.Proof{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return proof.Find(s.proofs, kind, version)
}

// Faults returns the routes that are broken in exactly that version; none if it is not proven.
func (s *Service) Faults(kind bridge.AgentKind, version string) proof.Faults {
	found, _ := s.Of(kind, version)
	return found.Faults()
}

// OnRecorded has recorded called after each stored proof. It must be called before Run and
// Record.
func (s *Service) OnRecorded(recorded func()) {
	if s != nil {
		s.recorded = recorded
	}
}

// Summaries returns what is known of the present version of each kind, or of the one that
// was tried last if the present one is not known.
func (s *Service) Summaries() []proof.Summary {
	list := []proof.Summary{}
	if s == nil {
		return list
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range bridge.Kinds() {
		found, known := proof.Newest(s.proofs, kind)
		if version := s.versions[kind]; version != "" {
			found, known = proof.Find(s.proofs, kind, version)
		}
		if known {
			list = append(list, found.Sum())
		}
	}
	return list
}

// Record stores what came of a try. It fails with Invalid without a kind or a version, and
// with Storage or Unsupported if the file cannot be read or written. The file then stays
// as it is.
func (s *Service) Record(made proof.Proof) error {
	if _, err := bridge.ParseKind(string(made.Kind)); err != nil {
		return err
	}
	if made.Version == "" {
		return bridge.Errorf(bridge.Invalid, "a proof needs the version of %s", made.Kind)
	}
	made.At = s.opts.Now().UnixMilli()
	s.mu.Lock()
	stored, err := s.opts.File.Proofs() // one that cannot be read must not be replaced
	if err == nil {
		stored = proof.Record(stored, made)
		if err = s.opts.File.SetProofs(stored); err == nil {
			s.proofs = stored
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.recorded()
	s.opts.Changed()
	return nil
}

// Run tries versions without a proof until ctx ends: one after the other, each once, and
// only while the setting allows it and nothing is at work.
func (s *Service) Run(ctx context.Context) {
	if s == nil || len(s.opts.Kinds) == 0 {
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.step(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// step asks for versions if a day has passed, and tries what is due.
func (s *Service) step(ctx context.Context) {
	settings, err := s.opts.Settings()
	if err != nil || settings.Prove != config.ProveAuto {
		return
	}
	s.ask(ctx)
	for _, kind := range s.opts.Kinds {
		if ctx.Err() != nil || !s.isReady(kind) || s.opts.Busy(ctx) {
			continue
		}
		s.try(ctx, kind)
	}
}

// ask asks the connected agents for their versions, once a day.
func (s *Service) ask(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	isTime := s.askedLast.IsZero() || now.Sub(s.askedLast) >= askEvery
	if isTime {
		s.askedLast = now
	}
	s.mu.Unlock()
	if !isTime {
		return
	}
	connected, err := s.opts.Connected()
	if err != nil {
		s.opts.Log.Debug("the connected agents are not known", "err", err)
	}
	for _, kind := range connected {
		if !slices.Contains(s.opts.Kinds, kind) {
			continue
		}
		version, err := s.opts.Version(ctx, kind)
		if err != nil {
			s.opts.Log.Debug("the version of an agent CLI is not known", "agent", kind, "err", err)
			continue
		}
		s.Noticed(kind, version)
	}
}

// isReady reports whether a version of the kind waits to be tried, for long enough.
func (s *Service) isReady(kind bridge.AgentKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, waits := s.noticed[kind]
	if waits && !s.isDueLocked(kind, s.versions[kind]) {
		delete(s.noticed, kind) // its owner has proven it meanwhile
		return false
	}
	return waits && s.opts.Now().Sub(since) >= settle
}

// try tries the routes of a kind and stores what came of them. A route that is newly broken
// is tried a second time, because a busy PC can break one by slowness. If the PC is busy
// before that, the second try waits.
func (s *Service) try(ctx context.Context, kind bridge.AgentKind) {
	s.mu.Lock()
	this := attempt{kind, s.versions[kind]}
	made, isSecond := s.unsure[this]
	delete(s.unsure, this)
	delete(s.noticed, kind)
	s.tried[this] = s.opts.Now()
	s.mu.Unlock()
	if !isSecond {
		made = s.run(ctx, this)
	}
	if ctx.Err() == nil && s.isNewlyBroken(made) {
		if !isSecond && s.opts.Busy(ctx) {
			s.wait(this, made)
			return
		}
		first := made
		made = s.run(ctx, this)
		if made.Problem == "" && made.Version != first.Version {
			s.Noticed(kind, made.Version) // it was updated between the tries
			return
		}
		made = proof.Confirm(first, made)
	}
	if ctx.Err() != nil {
		return // the broker ends: the next one tries it
	}
	if err := s.Record(made); err != nil {
		s.opts.Log.Warn("what came of trying an agent is not kept", "agent", kind, "err", err)
		return
	}
	s.opts.Log.Info("the routes into an agent were tried", "agent", kind, "version", made.Version, "broken", len(made.Broken()), "problem", made.Problem)
}

// run tries the routes once. A try that fails or takes too long is a proof with a problem.
func (s *Service) run(ctx context.Context, this attempt) proof.Proof {
	running, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	made, err := s.opts.Run(running, this.kind)
	switch {
	case running.Err() != nil:
		return proof.Proof{Kind: this.kind, Version: this.version, Problem: "the try took longer than " + bridge.Span(patience)}
	case err != nil:
		return proof.Proof{Kind: this.kind, Version: this.version, Problem: err.Error()}
	case made.Version == "":
		made.Version = this.version
	}
	return made
}

// isNewlyBroken reports whether a try found a route broken that is not stored as broken in
// that version.
func (s *Service) isNewlyBroken(made proof.Proof) bool {
	return made.Problem == "" && made.HasNew(s.Faults(made.Kind, made.Version))
}

// wait keeps a first try until the PC is not busy.
func (s *Service) wait(this attempt, first proof.Proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tried, this)
	s.unsure[this] = first
	s.noticed[this.kind] = s.opts.Now().Add(-settle) // it has settled
}
