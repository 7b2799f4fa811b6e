package broker

import (
	"context"
	"slices"

	"bridge/backend/broker/presence"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// sessions is the part of the broker that registers sessions, identifies callers and ends sessions.
type sessions struct {
	*core
	prefs *wake.Prefs
}

// register makes a connection part of a session (MSG-03).
func (p *sessions) register(ctx context.Context, l *link, args api.Register) (api.Registered, error) {
	if err := args.Check(); err != nil {
		return api.Registered{}, err
	}
	if err := p.checkJob(l, args); err != nil {
		return api.Registered{}, err
	}
	s, provisional := p.Register(l, args)
	if provisional {
		note, err := p.decisions.note(ctx, decision.Target{Agent: args.Kind, Cwd: args.Cwd})
		return api.Registered{Note: note}, err
	}
	if err := p.persistIdentity(ctx, s); err != nil {
		return api.Registered{}, err
	}
	note, err := p.decisions.note(ctx, p.TargetOf(s))
	p.children.scheduleCheck(s, args.CLIDataDir)
	if args.Hooks { // its state may be unknown, and claude's registry may show it
		p.idleness.Check(s)
	}
	p.status.askVersion(args.Kind, presence.Begins(s, args))
	p.changed()
	p.Lock()
	answer := presence.Joined(s)
	p.Unlock()
	answer.Note = note
	return answer, err
}

// persistIdentity stores what a registration or a learned identity changed, and catches
// the session up on decisions (DEC-13). It is idempotent.
func (p *sessions) persistIdentity(ctx context.Context, s *session.Session) error {
	p.Lock()
	peer := store.Peer{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, SeenAt: p.nowMillis()}
	target := p.Roster.Target(s)
	box := p.Boxes[s.ID]
	var former []string
	if box != nil {
		former = slices.Clone(box.FormerIDs)
	}
	runner := s.Host == session.HostRunner
	p.Unlock()
	p.at(persisting)
	// The roster already holds the session. Writes are sequential, so a decision whose
	// recipients were chosen earlier is written before this. The catch-up below sees it.
	// Every later decision is addressed to the session.
	if err := p.opts.DB.SavePeer(ctx, peer); err != nil {
		return err
	}
	p.Exchanges.Identified(peer.ID, former)
	p.costs.Identified(peer.Agent, peer.SessionID, peer.ID, former)
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

// leave ends one session of a plugin's connection. It fails with NotFound for any other.
func (p *sessions) leave(_ context.Context, l *link, args api.Leave) (api.Empty, error) {
	p.Lock()
	held := l.Sessions[args.ID]
	if held {
		delete(l.Sessions, args.ID)
		p.LeaveUnlessHeldLocked(args.ID)
	}
	p.Unlock()
	if !held {
		return api.Empty{}, bridge.Errorf(bridge.NotFound, "the connection is not part of that session")
	}
	p.changed()
	return api.Empty{}, nil
}

// callerOf returns the session on whose behalf a connection asks. If the call carries a
// host session id, callerOf identifies or creates the session.
func (p *sessions) callerOf(ctx context.Context, l *link, caller api.Caller) (*session.Session, error) {
	p.Lock()
	s, persisted, err := p.FindCallerLocked(l, caller)
	p.Unlock()
	if err != nil || persisted {
		return s, err
	}
	if err := p.persistIdentity(ctx, s); err != nil {
		return nil, err
	}
	p.changed()
	return s, nil
}

// autoWake sets the calling session's auto-wake. It fails with Denied for a native child.
func (p *sessions) autoWake(ctx context.Context, l *link, args api.AutoWakeArgs) (api.Empty, error) {
	s, err := p.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.Empty{}, err
	}
	if p.children.isChild(args.Caller) {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "a native child cannot change its parent's wake policy")
	}
	if err := p.prefs.Set(p.TargetOf(s).ID, args.Enabled); err != nil {
		return api.Empty{}, err
	}
	p.Lock()
	s.Wake.AutoWake = args.Enabled
	p.Unlock()
	p.changed()
	return api.Empty{}, p.activity.noteActivity(ctx, s, "tool auto_wake")
}
