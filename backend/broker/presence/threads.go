package presence

import (
	"slices"

	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// A host may serve several threads from one process, codex's background server
// does: each thread has an MCP server of its own, but a server learns whose it
// is only when its thread calls a tool. Until then a thread that a hook names is
// given to a server that stands for nobody. That is a guess, and all of it is
// here: a call proves whose a server is, a guess that was wrong is exchanged,
// and a thread whose guessed server ends goes to another.

// provisionalLocked reports whether a process that registers without an identity
// is no session yet.
func (p *Presence) provisionalLocked(args api.Register) bool {
	switch host := args.Host(); {
	case host == session.HostShared:
		return true
	case host == session.HostServer && args.Name == "":
		return args.Previous == ""
	default:
		return p.hostHasSessionLocked(args)
	}
}

// freeServerLocked finds the server that a hook's thread may be given to: one
// below the hook's agent that stands for nobody. Of several servers of a host
// with threads it is the one that has waited longest, in the same folder if
// there is one; of any other host nobody can tell.
func (p *Presence) freeServerLocked(call session.HookCall) *Link {
	var found *Link
	for _, l := range p.Conns {
		if l.Identity == nil || l.Identity.Host() == session.HostShared || len(l.Sessions) > 0 || l.isOff() || l.Identity.Kind != call.Kind || !slices.Contains(call.Ancestors, l.Identity.AgentPID) {
			continue
		}
		switch {
		case found == nil:
			found = l
		case l.Identity.Host() != session.HostServer:
			return nil // the first tool call of each will tell
		case l.fitsBetter(found, call.Cwd):
			found = l
		}
	}
	return found
}

func (l *Link) fitsBetter(other *Link, cwd string) bool {
	if here, there := l.Identity.Cwd == cwd, other.Identity.Cwd == cwd; here != there {
		return here
	}
	return l.Mod.Number < other.Mod.Number
}

// proveLocked notes that the thread s itself called through l. What l stood for
// by guess goes to the server that stood for s.
func (p *Presence) proveLocked(l *Link, s *session.Session) {
	if l.Identity.Host() != session.HostServer || l.proven {
		return
	}
	l.proven = true
	for id := range l.Sessions {
		if id == s.ID {
			continue
		}
		delete(l.Sessions, id)
		guessed, live := p.Roster.Get(id)
		if other := p.guessedServerLocked(s.ID); live && other != nil {
			delete(other.Sessions, s.ID)
			p.attachLocked(other, guessed)
		}
		p.LeaveUnlessHeldLocked(id)
	}
}

// guessedServerLocked finds a server that stands for the session by guess.
func (p *Presence) guessedServerLocked(id string) *Link {
	for _, l := range p.Conns {
		if l.Identity != nil && l.Identity.Host() == session.HostServer && !l.proven && l.Sessions[id] {
			return l
		}
	}
	return nil
}

// handOnLocked gives a session that l held by guess to another server of the
// same host, now that l has ended: it may have been another thread's.
func (p *Presence) handOnLocked(l *Link, id string) {
	s, live := p.Roster.Get(id)
	if !live || l.Identity == nil || l.Identity.Host() != session.HostServer || l.proven {
		return
	}
	call := session.HookCall{Kind: s.Kind, Cwd: s.Cwd, Ancestors: []int{l.Identity.AgentPID}}
	if next := p.freeServerLocked(call); next != nil {
		p.attachLocked(next, s)
	}
}

// EndThread takes a thread off the list that its host says is over. Its server
// may go on and stand for another.
func (p *Presence) EndThread(s *session.Session) {
	p.Lock()
	defer p.Unlock()
	if s.Host != session.HostServer {
		return
	}
	for _, l := range p.Conns {
		delete(l.Sessions, s.ID)
	}
	p.LeaveUnlessHeldLocked(s.ID)
}

// begunLocked finds the session of a thread that its terminal has begun and that no hook has
// told of yet: of several in one folder the first.
func (p terminals) begunLocked(call session.HookCall) (found *session.Session) {
	for _, s := range p.Roster.ByProcess(call.Kind, call.Ancestors) {
		if s.Host == session.HostServer && s.SessionID == "" && s.Cwd == call.Cwd && call.Event != session.EventEnd && (found == nil || s.Since < found.Since) {
			found = s
		}
	}
	return found
}

// promoteLocked makes the provisional server below the hook's agent process the
// session that the hook speaks of: a second thread of one codex process.
func (p *Presence) promoteLocked(call session.HookCall) (*session.Session, bool) {
	if s := (terminals{p}).begunLocked(call); s != nil {
		p.bindLocked(s, call.SessionID)
		return s, true
	}
	only := p.freeServerLocked(call)
	if only == nil {
		return nil, false
	}
	args := *only.Identity
	args.Previous = ""
	s := p.byHostOrNewLocked(only, args, call.SessionID)
	p.attachLocked(only, s)
	return s, true
}
