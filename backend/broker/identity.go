package broker

import (
	"path/filepath"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// identity is the part that says which session a connection is part of.
type identity struct{ *core }

// learnHostLocked takes in what a connection that becomes part of s knows of its
// host. Whatever was handed to another process is looked at again.
func (p *identity) learnHostLocked(l *link, s *session.Session) {
	if s.Process != l.host.Name {
		p.boxes[s.ID].Doubt()
	}
	if l.host.Name != "" {
		s.Process = l.host.Name
	}
	if l.identity != nil && filepath.IsAbs(l.identity.CLIDataDir) {
		s.CLIDataDir = l.identity.CLIDataDir
	}
}

// placeLocked finds or makes the session that a registering process belongs to.
// A process is provisional, and no session yet, when it serves several sessions
// or when its agent process already has one: then it may be a native child's or
// a second thread's, and its first call with an identity will tell.
func (p *identity) placeLocked(l *link, args api.Register) (s *session.Session, provisional bool) {
	if args.SessionID != "" {
		s = p.byHostOrNewLocked(l, args, args.SessionID)
	} else {
		if p.threads.provisionalLocked(args) {
			return nil, true
		}
		s = p.byPreviousOrNewLocked(args)
	}
	p.attachLocked(l, s)
	return s, false
}

// hostHasSessionLocked reports whether the agent process of an unnamed,
// unidentified registration has a session of that folder already. HostKnown
// guards it: scripts may start many servers from one process.
func (p *identity) hostHasSessionLocked(args api.Register) bool {
	if !args.HostKnown || args.Name != "" {
		return false
	}
	for _, s := range p.roster.ByProcess(args.Kind, []int{args.AgentPID}) {
		if s.ID != args.Previous {
			return true
		}
	}
	return false
}

func (p *identity) byHostOrNewLocked(l *link, args api.Register, sessionID string) *session.Session {
	if s, ok := p.roster.ByHost(args.Kind, sessionID); ok {
		return s
	}
	if own := p.unboundLocked(l); own != nil {
		p.bindLocked(own, sessionID)
		return own
	}
	id := p.roster.PriorID(args.Kind, sessionID)
	if _, live := p.roster.Get(id); id == "" || live { // live under another host session by now
		id = p.freeIDLocked(args.Previous)
	}
	s := p.sessions.newSession(args, id)
	s.SessionID = sessionID
	p.joinLocked(s, args.Name)
	return s
}

func (p *identity) byPreviousOrNewLocked(args api.Register) *session.Session {
	if s, ok := p.roster.Get(args.Previous); ok && s.Kind == args.Kind {
		return s
	}
	s := p.sessions.newSession(args, p.freeIDLocked(args.Previous))
	if known, ok := p.roster.Known(s.ID); ok {
		s.SessionID = known.SessionID
	}
	p.joinLocked(s, args.Name)
	return s
}

// freeIDLocked returns the process's earlier peer id, or a new one when there
// was none or somebody else has it.
func (p *identity) freeIDLocked(previous string) string {
	if _, live := p.roster.Get(previous); previous != "" && !live {
		return previous
	}
	return uuid.NewString()
}

func (p *identity) joinLocked(s *session.Session, wanted string) {
	p.roster.Join(s, wanted)
	p.boxes[s.ID] = mailbox.New()
	p.sessions.applyPrefsLocked(s)
}

// attachLocked makes the connection part of s and tells it, so that it can say
// who it was to the next broker.
func (p *identity) attachLocked(l *link, s *session.Session) {
	if !l.sessions[s.ID] {
		l.conn.Push(api.EventJoined, joined(s))
	}
	l.sessions[s.ID] = true
	p.learnHostLocked(l, s)
	l.leases.Join(p.boxes[s.ID])
	if l.conn.Hello().Role == api.RolePlugin {
		s.Plugin = true
	}
}

// unboundLocked returns the connection's session whose host session id is not
// known yet, if it has exactly that one.
func (p *identity) unboundLocked(l *link) *session.Session {
	if len(l.sessions) != 1 {
		return nil
	}
	for id := range l.sessions {
		if s, ok := p.roster.Get(id); ok && s.SessionID == "" {
			return s
		}
	}
	return nil
}

// bindLocked gives a session the host session id that was just learned. A host
// session seen before brings its peer id along, so its mail and its decision notices
// are found again.
func (p *identity) bindLocked(s *session.Session, sessionID string) {
	prior := p.roster.PriorID(s.Kind, sessionID)
	if _, live := p.roster.Get(prior); prior != "" && prior != s.ID && !live {
		p.rekeyLocked(s, prior)
	}
	p.roster.Bind(s, sessionID)
}

// rekeyLocked moves a live session to the peer id that its host session had.
func (p *identity) rekeyLocked(s *session.Session, id string) {
	old := s.ID
	box := p.boxes[old]
	delete(p.boxes, old)
	if s.SessionID == "" {
		box.FormerIDs = append(box.FormerIDs, old)
	} else { // it was another host session until now, and that one's mail stays its own
		box.Signal()
		box = mailbox.New()
	}
	p.roster.Rekey(s, id)
	p.sessions.applyPrefsLocked(s)
	p.boxes[id] = box
	for _, l := range p.conns {
		if l.sessions[old] {
			delete(l.sessions, old)
			l.sessions[id] = true
			l.conn.Push(api.EventJoined, joined(s))
		}
	}
}

// leaveUnlessHeldLocked takes a session off the list when no connection is part
// of it any more. Its mail stays.
func (p *identity) leaveUnlessHeldLocked(id string) {
	for _, l := range p.conns {
		if l.sessions[id] {
			return
		}
	}
	p.roster.Leave(id)
	if box := p.boxes[id]; box != nil {
		box.Signal()
		delete(p.boxes, id)
	}
	p.changed()
}

// findCallerLocked reports persisted false when the session is new or learned who
// it is.
func (p *identity) findCallerLocked(l *link, caller api.Caller) (s *session.Session, persisted bool, err error) {
	if l.identity == nil {
		return nil, false, bridge.Errorf(bridge.Denied, "register a session first")
	}
	if caller.SessionID != "" {
		s, persisted, err := p.identifiedLocked(l, caller.SessionID)
		if err == nil && caller.ChildID == "" {
			p.threads.proveLocked(l, s)
		}
		return s, persisted, err
	}
	if caller.Session != "" && !l.sessions[caller.Session] {
		return nil, false, bridge.Errorf(bridge.Denied, "the connection is not part of that session")
	}
	if caller.Session != "" || len(l.sessions) == 1 {
		for id := range l.sessions {
			if caller.Session == "" || caller.Session == id {
				s, _ = p.roster.Get(id)
			}
		}
		return s, true, nil
	}
	if len(l.sessions) > 1 {
		return nil, false, bridge.Errorf(bridge.Invalid, "the connection has several sessions: say which one calls")
	}
	if l.identity.Host() == session.HostShared {
		return nil, false, bridge.Errorf(bridge.Unavailable, "this session is not known to Bridge yet: its plugin must report it; run `bridge install %s` and start the session again", l.identity.Kind)
	}
	// A provisional process calls without an identity: it is a session after all.
	s = p.byPreviousOrNewLocked(*l.identity)
	p.attachLocked(l, s)
	return s, false, nil
}

func (p *identity) identifiedLocked(l *link, sessionID string) (*session.Session, bool, error) {
	if err := bridge.CheckID("the host session id", sessionID); err != nil {
		return nil, false, err
	}
	if s, ok := p.roster.ByHost(l.identity.Kind, sessionID); ok {
		return s, !p.moveToLocked(l, s), nil
	}
	args := *l.identity
	args.Previous = ""
	s := p.byHostOrNewLocked(l, args, sessionID)
	p.moveToLocked(l, s)
	return s, false, nil
}

// moveToLocked makes the connection part of s. A session that it stood for
// until now without knowing who it was is dissolved into s: then s has an
// identity to persist.
func (p *identity) moveToLocked(l *link, s *session.Session) (dissolved bool) {
	if l.sessions[s.ID] {
		return false
	}
	stand := p.unboundLocked(l)
	p.attachLocked(l, s)
	if stand == nil {
		return false
	}
	delete(l.sessions, stand.ID)
	box := p.boxes[s.ID]
	box.FormerIDs = append(box.FormerIDs, stand.ID)
	box.TakeOver(p.boxes[stand.ID])
	p.leaveUnlessHeldLocked(stand.ID)
	return true
}

// joined is what a process is told of the session that it is part of.
func joined(s *session.Session) api.Registered {
	return api.Registered{ID: s.ID, Name: s.Name, Hooks: s.HooksSeen}
}
