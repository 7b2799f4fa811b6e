package broker

import (
	"context"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/broker/wake"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/proc"
	"bridge/backend/session"
	"bridge/backend/store"
)

// sessions is the part that sessions register with, call through and leave.
type sessions struct {
	*core
	prefs *wake.Prefs
}

// register makes a connection part of a session (MSG-03).
func (p *sessions) register(ctx context.Context, l *link, args api.Register) (api.Registered, error) {
	if err := args.Check(); err != nil {
		return api.Registered{}, err
	}
	host := hostOf(l, args)
	p.mu.Lock()
	l.host = host
	l.leases.Keep(args.Leases)
	if l.identity == nil || l.conn.Hello().Role != api.RolePlugin {
		l.identity = &args
	}
	s, provisional := p.identity.placeLocked(l, args)
	p.mu.Unlock()
	if provisional {
		note, err := p.decisions.note(ctx, decision.Target{Agent: args.Kind, Cwd: args.Cwd})
		return api.Registered{Note: note}, err
	}
	if err := p.persistIdentity(ctx, s); err != nil {
		return api.Registered{}, err
	}
	note, err := p.decisions.note(ctx, p.targetOf(s))
	p.children.lookSoon(s, args.CLIDataDir)
	p.status.askVersion(args.Kind)
	p.changed()
	p.mu.Lock()
	answer := joined(s)
	p.mu.Unlock()
	answer.Note = note
	return answer, err
}

func (p *sessions) newSession(args api.Register, id string) *session.Session {
	return &session.Session{
		ID: id, Kind: args.Kind, Cwd: args.Cwd, AgentPID: args.AgentPID, Since: p.nowMillis(),
		Host: args.Host(), Channel: args.Channel, HooksSeen: args.Hooks, Wake: p.wakePolicy(args),
	}
}

// hostOf is the process of a registering connection: its host where that was
// recognised, else itself. Its MCP server may be connected for a moment longer than
// that runs, and come to the next broker too.
func hostOf(l *link, args api.Register) proc.Named {
	pid := l.conn.Hello().PID
	if args.HostKnown {
		pid = args.AgentPID
	}
	return proc.Known(args.Process, pid)
}

// wakePolicy is what the session advertises, or the owner's settings.
func (p *sessions) wakePolicy(args api.Register) session.Policy {
	if p := args.WakePrefs; p != nil {
		return session.Policy{AutoWake: p.AutoWake, WakeOnDirect: p.WakeOnDirect, MaxHops: p.MaxHops}
	}
	settings, err := p.opts.Settings()
	if err != nil {
		p.opts.Log.Warn("config.json is not used", "err", err)
		return session.Policy{WakeOnDirect: true, MaxHops: bridge.DefaultMaxHops}
	}
	return session.Policy{AutoWake: settings.AutoWake, WakeOnDirect: settings.WakeOnDirect, MaxHops: settings.MaxHops}
}

// applyPrefsLocked gives the session the auto-wake that it chose earlier.
func (p *sessions) applyPrefsLocked(s *session.Session) {
	if enabled, chosen := p.prefs.Get(s.ID); chosen {
		s.Wake.AutoWake = enabled
	}
}

// persistIdentity makes durable what a registration or a learned identity changed, and
// catches the session up on decisions (DEC-13). It may run again at any time.
func (p *sessions) persistIdentity(ctx context.Context, s *session.Session) error {
	p.mu.Lock()
	peer := store.Peer{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, SeenAt: p.nowMillis()}
	target := p.roster.Target(s)
	box := p.boxes[s.ID]
	var former []string
	if box != nil {
		former = slices.Clone(box.FormerIDs)
	}
	runner := s.Host == session.HostRunner
	p.mu.Unlock()
	p.at(persisting)
	// The session is on the list already. A decision whose recipients were chosen
	// before it came is written before this, for writes come one after another:
	// the catch-up below sees it. Every later one is addressed to the session.
	if err := p.opts.DB.SavePeer(ctx, peer); err != nil {
		return err
	}
	for _, old := range former {
		if err := p.opts.DB.Reassign(ctx, old, peer.ID); err != nil {
			return err
		}
	}
	if err := p.activity.offerAgain(ctx, s, false); err != nil {
		return err
	}
	if peer.SessionID == "" || runner {
		return nil
	}
	if err := p.opts.DB.ClaimByName(ctx, peer); err != nil {
		return err
	}
	for _, old := range append(former, peer.ID) {
		provisional := decision.Target{ID: old, Agent: peer.Agent}
		if err := p.opts.DB.LinkDecisionReceipts(ctx, provisional.SessionKey(), target.SessionKey()); err != nil {
			return err
		}
	}
	return p.decisions.catchUp(ctx, target)
}

// leave ends one session of a plugin's connection.
func (p *sessions) leave(_ context.Context, l *link, args api.Leave) (api.Empty, error) {
	p.mu.Lock()
	held := l.sessions[args.ID]
	if held {
		delete(l.sessions, args.ID)
		p.identity.leaveUnlessHeldLocked(args.ID)
	}
	p.mu.Unlock()
	if !held {
		return api.Empty{}, bridge.Errorf(bridge.NotFound, "the connection is not part of that session")
	}
	p.changed()
	return api.Empty{}, nil
}

// callerOf finds the session on whose behalf a connection asks. A call that
// carries a host session id identifies or creates it on the way.
func (p *sessions) callerOf(ctx context.Context, l *link, caller api.Caller) (*session.Session, error) {
	p.mu.Lock()
	s, persisted, err := p.identity.findCallerLocked(l, caller)
	p.mu.Unlock()
	if err != nil || persisted {
		return s, err
	}
	if err := p.persistIdentity(ctx, s); err != nil {
		return nil, err
	}
	p.changed()
	return s, nil
}

// autoWake sets the calling session's own preference.
func (p *sessions) autoWake(ctx context.Context, l *link, args api.AutoWakeArgs) (api.Empty, error) {
	s, err := p.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.Empty{}, err
	}
	if p.children.isChild(args.Caller) {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "a native child cannot change its parent's wake policy")
	}
	if err := p.prefs.Set(p.targetOf(s).ID, args.Enabled); err != nil {
		return api.Empty{}, err
	}
	p.mu.Lock()
	s.Wake.AutoWake = args.Enabled
	p.mu.Unlock()
	p.changed()
	return api.Empty{}, p.activity.noteActivity(ctx, s, "tool auto_wake")
}
