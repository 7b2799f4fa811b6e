package presence

import (
	"cmp"
	"path/filepath"

	"github.com/google/uuid"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// learnHostLocked records what a connection that joins s knows of its host. If the
// process changed, mail handed to the earlier process is checked again.
func (p *Presence) learnHostLocked(l *Link, s *session.Session) {
	if s.Process != l.Host.Name {
		p.Boxes[s.ID].Doubt()
	}
	if l.Host.Name != "" {
		s.Process = l.Host.Name
	}
	if l.Identity != nil && filepath.IsAbs(l.Identity.CLIDataDir) {
		s.CLIDataDir = l.Identity.CLIDataDir
	}
}

// placeLocked finds or creates the session that a registering process belongs to. If name
// is not empty, it is the session's, and the process is not provisional. A process is
// provisional, without a session, if it serves several sessions or its agent process
// already has one. It may then belong to a native child or a second thread. Its first
// call with an identity decides.
func (p *Presence) placeLocked(l *Link, args api.Register, name string) (s *session.Session, provisional bool) {
	if args.SessionID != "" && !l.isNestedLocked(p.Roster, args) {
		s = p.byHostOrNewLocked(l, args, args.SessionID)
	} else {
		s = servers{p}.serverlessOfLocked(args)
		if s == nil && name == "" && p.provisionalLocked(args) {
			return nil, true
		}
		if s == nil {
			args.Name = cmp.Or(args.Name, name)
			s = p.byPreviousOrNewLocked(args)
		}
	}
	p.attachLocked(l, s)
	return s, false
}

// hostHasSessionLocked reports whether the agent process of an unnamed, unidentified
// registration already has a session. It requires HostKnown, because scripts may start
// many servers from one process.
func (p *Presence) hostHasSessionLocked(args api.Register) bool {
	if !args.HostKnown || args.Name != "" {
		return false
	}
	for _, s := range p.Roster.ByProcess(args.Kind, []int{args.AgentPID}) {
		if s.ID != args.Previous {
			return true
		}
	}
	return false
}

func (p *Presence) byHostOrNewLocked(l *Link, args api.Register, sessionID string) *session.Session {
	if s, ok := p.Roster.ByHost(args.Kind, sessionID); ok {
		return s
	}
	if own := p.unboundLocked(l); own != nil {
		p.bindLocked(own, sessionID)
		return own
	}
	id := p.Roster.PriorID(args.Kind, sessionID)
	if _, live := p.Roster.Get(id); id == "" || live { // live under another host session by now
		id = p.freeIDLocked(args.Previous)
	}
	s := p.newSession(args, id)
	s.SessionID = sessionID
	p.joinLocked(s, args.Name)
	return s
}

func (p *Presence) byPreviousOrNewLocked(args api.Register) *session.Session {
	if s, ok := p.Roster.Get(args.Previous); ok && s.Kind == args.Kind {
		return s
	}
	s := p.newSession(args, p.freeIDLocked(args.Previous))
	if known, ok := p.Roster.Known(s.ID); ok {
		s.SessionID = known.SessionID
	}
	p.joinLocked(s, args.Name)
	return s
}

// freeIDLocked returns the process's earlier peer id. If it had none or another session
// has it, it returns a new one.
func (p *Presence) freeIDLocked(previous string) string {
	if _, live := p.Roster.Get(previous); previous != "" && !live {
		return previous
	}
	return uuid.NewString()
}

func (p *Presence) joinLocked(s *session.Session, wanted string) {
	p.Roster.Join(s, wanted)
	p.Boxes[s.ID] = mailbox.New()
	p.applyPrefsLocked(s)
}

// attachLocked makes the connection part of s and sends it the session's identity. The
// connection can then report that identity to the next broker.
func (p *Presence) attachLocked(l *Link, s *session.Session) {
	if !l.Sessions[s.ID] {
		l.Conn.Push(api.EventJoined, Joined(s))
	}
	l.Sessions[s.ID] = true
	servers{p}.serveAgainLocked(s, l.Identity)
	p.learnHostLocked(l, s)
	l.Leases.Join(p.Boxes[s.ID])
	if l.Conn.Hello().Role == api.RolePlugin {
		s.Plugin = true
	}
}

// unboundLocked returns the connection's session if it has exactly one and its host
// session id is still unknown, else nil.
func (p *Presence) unboundLocked(l *Link) *session.Session {
	if len(l.Sessions) != 1 {
		return nil
	}
	for id := range l.Sessions {
		if s, ok := p.Roster.Get(id); ok && s.SessionID == "" {
			return s
		}
	}
	return nil
}

// bindLocked gives a session the host session id that was just learned. If that host
// session had a peer id before, the session takes that id. Thus its mail and its decision
// notices are found again.
func (p *Presence) bindLocked(s *session.Session, sessionID string) {
	prior := p.Roster.PriorID(s.Kind, sessionID)
	if _, live := p.Roster.Get(prior); prior != "" && prior != s.ID && !live {
		p.rekeyLocked(s, prior)
	}
	p.Roster.Bind(s, sessionID)
}

// rekeyLocked moves a live session to the peer id that its host session had.
func (p *Presence) rekeyLocked(s *session.Session, id string) {
	old := s.ID
	box := p.Boxes[old]
	delete(p.Boxes, old)
	if s.SessionID == "" {
		box.FormerIDs = append(box.FormerIDs, old)
	} else { // it was another host session until now, whose mail stays separate
		box.Signal()
		box = mailbox.New()
	}
	p.Roster.Rekey(s, id)
	p.Turns.Move(old, id)
	p.Serverless.move(old, id)
	p.applyPrefsLocked(s)
	p.Boxes[id] = box
	for _, l := range p.Conns {
		if l.Sessions[old] {
			delete(l.Sessions, old)
			l.Sessions[id] = true
			l.Conn.Push(api.EventJoined, Joined(s))
		}
	}
}

// LeaveUnlessHeldLocked removes a session from the roster if no connection is part of it
// any more and it is not in [Serverless]. Its mail stays.
func (p *Presence) LeaveUnlessHeldLocked(id string) {
	if _, waits := p.Serverless[id]; waits || (servers{p}).isHeldLocked(id) {
		return
	}
	p.Roster.Leave(id)
	p.Turns.Note(id, false, p.opts.Now().UnixMilli())
	if box := p.Boxes[id]; box != nil {
		box.Signal()
		delete(p.Boxes, id)
	}
	p.opts.Changed()
}

// isHeldLocked reports whether a connection is part of the session.
func (p servers) isHeldLocked(id string) bool {
	for _, l := range p.Conns {
		if l.Sessions[id] {
			return true
		}
	}
	return false
}

// FindCallerLocked returns the session of a call. persisted is false if the session is
// new or was just identified. It fails with Denied, Invalid or Unavailable.
func (p *Presence) FindCallerLocked(l *Link, caller api.Caller) (s *session.Session, persisted bool, err error) {
	if l.Identity == nil {
		return nil, false, bridge.Errorf(bridge.Denied, "register a session first")
	}
	if l.Job != "" {
		caller = api.Caller{} // the connection speaks for the job's session, whatever the call says
	}
	if caller.SessionID != "" {
		s, persisted, err := p.identifiedLocked(l, caller.SessionID)
		if err == nil && caller.ChildID == "" {
			p.proveLocked(l, s)
		}
		return s, persisted, err
	}
	if caller.Session != "" && !l.Sessions[caller.Session] {
		return nil, false, bridge.Errorf(bridge.Denied, "the connection is not part of that session")
	}
	if caller.Session != "" || len(l.Sessions) == 1 {
		for id := range l.Sessions {
			if caller.Session == "" || caller.Session == id {
				s, _ = p.Roster.Get(id)
			}
		}
		return s, true, nil
	}
	if len(l.Sessions) > 1 {
		return nil, false, bridge.Errorf(bridge.Invalid, "the connection has several sessions: say which one calls")
	}
	if l.Identity.Host() == session.HostShared {
		return nil, false, bridge.Errorf(bridge.Unavailable, "this session is not known to Bridge yet: its plugin must report it; run `bridge install %s` and start the session again", l.Identity.Kind)
	}
	// A provisional process calls without an identity, so it is a session.
	s = p.byPreviousOrNewLocked(*l.Identity)
	p.attachLocked(l, s)
	return s, false, nil
}

func (p *Presence) identifiedLocked(l *Link, sessionID string) (*session.Session, bool, error) {
	if err := bridge.CheckID("the host session id", sessionID); err != nil {
		return nil, false, err
	}
	if s, ok := p.Roster.ByHost(l.Identity.Kind, sessionID); ok {
		return s, !p.moveToLocked(l, s), nil
	}
	args := *l.Identity
	args.Previous = ""
	s := p.byHostOrNewLocked(l, args, sessionID)
	p.moveToLocked(l, s)
	return s, false, nil
}

// moveToLocked makes the connection part of s. If the connection had an unidentified
// session until now, that session is merged into s. Then s has an identity to persist.
func (p *Presence) moveToLocked(l *Link, s *session.Session) (dissolved bool) {
	if l.Sessions[s.ID] {
		return false
	}
	stand := p.unboundLocked(l)
	p.attachLocked(l, s)
	if stand == nil {
		return false
	}
	delete(l.Sessions, stand.ID)
	box := p.Boxes[s.ID]
	box.FormerIDs = append(box.FormerIDs, stand.ID)
	box.TakeOver(p.Boxes[stand.ID])
	p.LeaveUnlessHeldLocked(stand.ID)
	return true
}

// Joined returns the event that informs a process of its session.
func Joined(s *session.Session) api.Registered {
	return api.Registered{ID: s.ID, Name: s.Name, Hooks: s.HooksSeen}
}
