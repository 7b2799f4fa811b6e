package presence

import (
	"slices"

	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// A host, such as codex's background server, may serve several threads from one process.
// Each thread has its own MCP server. A server learns its thread only when that thread
// calls a tool. Until then a thread that a hook names gets an unassigned server, by a
// guess. This file holds all of the guessing. A call proves whose a server is, and wrong
// guesses are exchanged. If a guessed server ends, its thread gets another.

// provisionalLocked reports whether a process that registers without an identity is not
// yet a session.
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

// freeServerLocked returns an unassigned server below the hook's agent, for the hook's
// thread. For a host with threads it returns the one that has waited longest, preferably
// in the same folder. For any other host with several servers it returns nil.
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
			return nil // the first tool call of each decides
		case l.fitsBetter(found, call.Cwd):
			found = l
		}
	}
	return found
}

func (l *Link) fitsBetter(other *Link, cwd string) bool {
	if matches, otherMatches := l.Identity.Cwd == cwd, other.Identity.Cwd == cwd; matches != otherMatches {
		return matches
	}
	return l.Mod.Number < other.Mod.Number
}

// proveLocked records that the thread s itself called through l. The session that l had
// by guess goes to the server that had s.
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

// guessedServerLocked returns a server that has the session by guess, nil for none.
func (p *Presence) guessedServerLocked(id string) *Link {
	for _, l := range p.Conns {
		if l.Identity != nil && l.Identity.Host() == session.HostServer && !l.proven && l.Sessions[id] {
			return l
		}
	}
	return nil
}

// handOnLocked gives a session that l held by guess to another server of the same host,
// after l has ended. l may have belonged to another thread.
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

// EndThread removes a thread from the roster after its host reported its end. Its server
// may continue for another thread.
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

// startedLocked returns the session of a thread that its terminal has begun and no hook has
// reported yet: the first of several in one folder.
func (p terminals) startedLocked(call session.HookCall) (found *session.Session) {
	for _, s := range p.Roster.ByProcess(call.Kind, call.Ancestors) {
		if s.Host == session.HostServer && s.SessionID == "" && s.Cwd == call.Cwd && call.Event != session.EventEnd && (found == nil || s.Since < found.Since) {
			found = s
		}
	}
	return found
}

// promoteLocked turns the provisional server below the hook's agent process into the
// hook's session. It is a second thread of one codex process.
func (p *Presence) promoteLocked(call session.HookCall) (*session.Session, bool) {
	if s := (terminals{p}).startedLocked(call); s != nil {
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
