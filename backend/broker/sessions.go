package broker

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
	"bridge/backend/store"
)

func ownPID() int { return os.Getpid() }

// register makes a connection part of a session (MSG-03).
func (b *Broker) register(ctx context.Context, l *link, args api.Register) (api.Registered, error) {
	if err := checkRegister(args); err != nil {
		return api.Registered{}, err
	}
	host := hostOf(l, args)
	b.mu.Lock()
	l.host = host
	l.leases.Keep(args.Loans)
	if l.identity == nil || l.conn.Hello().Role != api.RolePlugin {
		l.identity = &args
	}
	s, provisional := b.placeLocked(l, args)
	b.mu.Unlock()
	if provisional {
		note, err := b.note(ctx, decision.Target{Agent: args.Kind, Cwd: args.Cwd})
		return api.Registered{Note: note}, err
	}
	if err := b.settle(ctx, s); err != nil {
		return api.Registered{}, err
	}
	note, err := b.note(ctx, b.targetOf(s))
	b.lookSoon(s, args.Store)
	b.askVersion(args.Kind)
	b.changed()
	b.mu.Lock()
	answer := joined(s)
	b.mu.Unlock()
	answer.Note = note
	return answer, err
}

func checkRegister(args api.Register) error {
	if _, err := bridge.ParseKind(string(args.Kind)); err != nil {
		return err
	}
	if args.Name != "" {
		if err := bridge.CheckName(args.Name); err != nil {
			return err
		}
	}
	if args.Cwd != "" && !filepath.IsAbs(args.Cwd) {
		return bridge.Errorf(bridge.Invalid, "the working folder %q is not absolute", args.Cwd)
	}
	for what, id := range map[string]string{"the host session id": args.SessionID, "the previous id": args.Previous} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// placeLocked finds or makes the session that a registering process belongs to.
// A process is provisional, and no session yet, when it serves several sessions
// or when its agent process already has one: then it may be a native child's or
// a second thread's, and its first call with an identity will tell.
func (b *Broker) placeLocked(l *link, args api.Register) (s *session.Session, provisional bool) {
	if args.SessionID != "" {
		s = b.byHostOrNewLocked(l, args, args.SessionID)
	} else {
		if b.provisionalLocked(args) {
			return nil, true
		}
		s = b.byPreviousOrNewLocked(args)
	}
	b.attachLocked(l, s)
	return s, false
}

// hostHasSessionLocked reports whether the agent process of an unnamed,
// unidentified registration has a session of that folder already. HostKnown
// guards it: scripts may start many servers from one process.
func (b *Broker) hostHasSessionLocked(args api.Register) bool {
	if !args.HostKnown || args.Name != "" {
		return false
	}
	for _, s := range b.roster.ByProcess(args.Kind, []int{args.AgentPID}) {
		if s.ID != args.Previous {
			return true
		}
	}
	return false
}

func (b *Broker) byHostOrNewLocked(l *link, args api.Register, sessionID string) *session.Session {
	if s, ok := b.roster.ByHost(args.Kind, sessionID); ok {
		return s
	}
	if own := b.unboundLocked(l); own != nil {
		b.bindLocked(own, sessionID)
		return own
	}
	id := b.roster.PriorID(args.Kind, sessionID)
	if _, live := b.roster.Get(id); id == "" || live { // live under another host session by now
		id = b.freeIDLocked(args.Previous)
	}
	s := b.newSession(args, id)
	s.SessionID = sessionID
	b.joinLocked(s, args.Name)
	return s
}

func (b *Broker) byPreviousOrNewLocked(args api.Register) *session.Session {
	if s, ok := b.roster.Get(args.Previous); ok && s.Kind == args.Kind {
		return s
	}
	s := b.newSession(args, b.freeIDLocked(args.Previous))
	if known, ok := b.roster.Known(s.ID); ok {
		s.SessionID = known.SessionID
	}
	b.joinLocked(s, args.Name)
	return s
}

// freeIDLocked returns the process's earlier peer id, or a new one when there
// was none or somebody else has it.
func (b *Broker) freeIDLocked(previous string) string {
	if _, live := b.roster.Get(previous); previous != "" && !live {
		return previous
	}
	return uuid.NewString()
}

func (b *Broker) newSession(args api.Register, id string) *session.Session {
	return &session.Session{
		ID: id, Kind: args.Kind, Cwd: args.Cwd, AgentPID: args.AgentPID, Since: b.nowMillis(),
		Runner: args.Runner, Channel: args.Channel, Threads: args.Threads, HooksSeen: args.Hooks, Wake: b.wakePolicy(args),
	}
}

// wakePolicy is what the session advertises, or the owner's settings.
func (b *Broker) wakePolicy(args api.Register) session.Policy {
	if p := args.WakePrefs; p != nil {
		return session.Policy{AutoWake: p.AutoWake, WakeOnDirect: p.WakeOnDirect, MaxHops: p.MaxHops}
	}
	settings, err := b.opts.Settings()
	if err != nil {
		b.opts.Log.Warn("config.json is not used", "err", err)
		return session.Policy{WakeOnDirect: true, MaxHops: bridge.DefaultMaxHops}
	}
	return session.Policy{AutoWake: settings.AutoWake, WakeOnDirect: settings.WakeOnDirect, MaxHops: settings.MaxHops}
}

func (b *Broker) joinLocked(s *session.Session, wanted string) {
	b.roster.Join(s, wanted)
	b.boxes[s.ID] = mailbox.New()
	b.applyPrefsLocked(s)
}

// applyPrefsLocked gives the session the auto-wake that it chose earlier.
func (b *Broker) applyPrefsLocked(s *session.Session) {
	if enabled, chosen := b.prefs.Get(s.ID); chosen {
		s.Wake.AutoWake = enabled
	}
}

// attachLocked makes the connection part of s and tells it, so that it can say
// who it was to the next broker.
func (b *Broker) attachLocked(l *link, s *session.Session) {
	if !l.sessions[s.ID] {
		l.conn.Push(api.EventJoined, joined(s))
	}
	l.sessions[s.ID] = true
	b.learnHostLocked(l, s)
	l.leases.Join(b.boxes[s.ID])
	if l.conn.Hello().Role == api.RolePlugin {
		s.Plugin = true
	}
}

// joined is what a process is told of the session that it is part of.
func joined(s *session.Session) api.Registered {
	return api.Registered{ID: s.ID, Name: s.Name, Hooks: s.HooksSeen}
}

// unboundLocked returns the connection's session whose host session id is not
// known yet, if it has exactly that one.
func (b *Broker) unboundLocked(l *link) *session.Session {
	if len(l.sessions) != 1 {
		return nil
	}
	for id := range l.sessions {
		if s, ok := b.roster.Get(id); ok && s.SessionID == "" {
			return s
		}
	}
	return nil
}

// bindLocked gives a session the host session id that was just learned. A host
// session seen before brings its peer id along, so its mail and receipts are
// found again.
func (b *Broker) bindLocked(s *session.Session, sessionID string) {
	prior := b.roster.PriorID(s.Kind, sessionID)
	if _, live := b.roster.Get(prior); prior != "" && prior != s.ID && !live {
		b.rekeyLocked(s, prior)
	}
	b.roster.Bind(s, sessionID)
}

// rekeyLocked moves a live session to the peer id that its host session had.
func (b *Broker) rekeyLocked(s *session.Session, id string) {
	old := s.ID
	box := b.boxes[old]
	delete(b.boxes, old)
	if s.SessionID == "" {
		box.FormerIDs = append(box.FormerIDs, old)
	} else { // it was another host session until now, and that one's mail stays its own
		box.Signal()
		box = mailbox.New()
	}
	b.roster.Rekey(s, id)
	b.applyPrefsLocked(s)
	b.boxes[id] = box
	for _, l := range b.conns {
		if l.sessions[old] {
			delete(l.sessions, old)
			l.sessions[id] = true
			l.conn.Push(api.EventJoined, joined(s))
		}
	}
}

// settle makes durable what a registration or a learned identity changed, and
// catches the session up on decisions (DEC-13). It may run again at any time.
func (b *Broker) settle(ctx context.Context, s *session.Session) error {
	b.mu.Lock()
	peer := store.Peer{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, SeenAt: b.nowMillis()}
	target := b.roster.Target(s)
	box := b.boxes[s.ID]
	var former []string
	if box != nil {
		former = slices.Clone(box.FormerIDs)
	}
	runner := s.Runner
	b.mu.Unlock()
	b.at(settling)
	// The session is on the list already. A decision whose recipients were chosen
	// before it came is written before this, for writes come one after another:
	// the catch-up below sees it. Every later one is addressed to the session.
	if err := b.opts.DB.SavePeer(ctx, peer); err != nil {
		return err
	}
	for _, old := range former {
		if err := b.opts.DB.Readdress(ctx, old, peer.ID); err != nil {
			return err
		}
	}
	if err := b.offerAgain(ctx, s, false); err != nil {
		return err
	}
	if peer.SessionID == "" || runner {
		return nil
	}
	if err := b.opts.DB.ClaimNamed(ctx, peer); err != nil {
		return err
	}
	for _, old := range append(former, peer.ID) {
		provisional := decision.Target{ID: old, Agent: peer.Agent}
		if err := b.opts.DB.LinkDecisionReceipts(ctx, provisional.SessionKey(), target.SessionKey()); err != nil {
			return err
		}
	}
	return b.catchUp(ctx, target)
}

func (b *Broker) targetOf(s *session.Session) decision.Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.roster.Target(s)
}

// leave ends one session of a plugin's connection.
func (b *Broker) leave(_ context.Context, l *link, args api.Leave) (api.Empty, error) {
	b.mu.Lock()
	held := l.sessions[args.ID]
	if held {
		delete(l.sessions, args.ID)
		b.leaveUnlessHeldLocked(args.ID)
	}
	b.mu.Unlock()
	if !held {
		return api.Empty{}, bridge.Errorf(bridge.NotFound, "the connection is not part of that session")
	}
	b.changed()
	return api.Empty{}, nil
}

// leaveUnlessHeldLocked takes a session off the list when no connection is part
// of it any more. Its mail stays.
func (b *Broker) leaveUnlessHeldLocked(id string) {
	for _, l := range b.conns {
		if l.sessions[id] {
			return
		}
	}
	b.roster.Leave(id)
	if box := b.boxes[id]; box != nil {
		box.Signal()
		delete(b.boxes, id)
	}
	b.changedLocked()
}

// callerOf finds the session on whose behalf a connection asks. A call that
// carries a host session id identifies or creates it on the way.
func (b *Broker) callerOf(ctx context.Context, l *link, caller api.Caller) (*session.Session, error) {
	b.mu.Lock()
	s, settled, err := b.findCallerLocked(l, caller)
	b.mu.Unlock()
	if err != nil || settled {
		return s, err
	}
	if err := b.settle(ctx, s); err != nil {
		return nil, err
	}
	b.changed()
	return s, nil
}

// findCallerLocked reports settled false when the session is new or learned who
// it is.
func (b *Broker) findCallerLocked(l *link, caller api.Caller) (s *session.Session, settled bool, err error) {
	if l.identity == nil {
		return nil, false, bridge.Errorf(bridge.Denied, "register a session first")
	}
	if caller.SessionID != "" {
		s, settled, err := b.identifiedLocked(l, caller.SessionID)
		if err == nil && caller.ChildID == "" {
			b.proveLocked(l, s)
		}
		return s, settled, err
	}
	if caller.Session != "" && !l.sessions[caller.Session] {
		return nil, false, bridge.Errorf(bridge.Denied, "the connection is not part of that session")
	}
	if caller.Session != "" || len(l.sessions) == 1 {
		for id := range l.sessions {
			if caller.Session == "" || caller.Session == id {
				s, _ = b.roster.Get(id)
			}
		}
		return s, true, nil
	}
	if len(l.sessions) > 1 {
		return nil, false, bridge.Errorf(bridge.Invalid, "the connection has several sessions: say which one calls")
	}
	if l.identity.Shared {
		return nil, false, bridge.Errorf(bridge.Unavailable, "this session is not known to Bridge yet: its plugin must report it; run `bridge install %s` and start the session again", l.identity.Kind)
	}
	// A provisional process calls without an identity: it is a session after all.
	s = b.byPreviousOrNewLocked(*l.identity)
	b.attachLocked(l, s)
	return s, false, nil
}

func (b *Broker) identifiedLocked(l *link, sessionID string) (*session.Session, bool, error) {
	if err := bridge.CheckID("the host session id", sessionID); err != nil {
		return nil, false, err
	}
	if s, ok := b.roster.ByHost(l.identity.Kind, sessionID); ok {
		return s, !b.moveToLocked(l, s), nil
	}
	args := *l.identity
	args.Previous = ""
	s := b.byHostOrNewLocked(l, args, sessionID)
	b.moveToLocked(l, s)
	return s, false, nil
}

// moveToLocked makes the connection part of s. A session that it stood for
// until now without knowing who it was is dissolved into s: then s has mail to
// settle.
func (b *Broker) moveToLocked(l *link, s *session.Session) (dissolved bool) {
	if l.sessions[s.ID] {
		return false
	}
	stand := b.unboundLocked(l)
	b.attachLocked(l, s)
	if stand == nil {
		return false
	}
	delete(l.sessions, stand.ID)
	box := b.boxes[s.ID]
	box.FormerIDs = append(box.FormerIDs, stand.ID)
	box.TakeOver(b.boxes[stand.ID])
	b.leaveUnlessHeldLocked(stand.ID)
	return true
}
