package broker

import (
	"slices"

	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// A host may serve several threads from one process, codex's background server
// does: each thread has an MCP server of its own, but a server learns whose it
// is only when its thread calls a tool. Until then a thread that a hook names is
// given to a server that stands for nobody. That is a guess, and all of it is
// here: a call proves whose a server is, a guess that was wrong is exchanged,
// and a thread whose guessed server ends goes to another.

// threads is the part that guesses and proves whose a server is.
type threads struct{ *core }

// provisionalLocked reports whether a process that registers without an identity
// is no session yet.
func (p *threads) provisionalLocked(args api.Register) bool {
	switch host := args.Host(); {
	case host == session.HostShared:
		return true
	case host == session.HostServer && args.Name == "":
		return args.Previous == ""
	default:
		return p.identity.hostHasSessionLocked(args)
	}
}

// freeServerLocked finds the server that a hook's thread may be given to: one
// below the hook's agent that stands for nobody. Of several servers of a host
// with threads it is the one that has waited longest, in the same folder if
// there is one; of any other host nobody can tell.
func (p *threads) freeServerLocked(call session.HookCall) *link {
	var found *link
	for _, l := range p.conns {
		if l.identity == nil || l.identity.Host() == session.HostShared || len(l.sessions) > 0 || l.identity.Kind != call.Kind || !slices.Contains(call.Ancestors, l.identity.AgentPID) {
			continue
		}
		switch {
		case found == nil:
			found = l
		case l.identity.Host() != session.HostServer:
			return nil // the first tool call of each will tell
		case l.fitsBetter(found, call.Cwd):
			found = l
		}
	}
	return found
}

func (l *link) fitsBetter(other *link, cwd string) bool {
	if here, there := l.identity.Cwd == cwd, other.identity.Cwd == cwd; here != there {
		return here
	}
	return l.mod.Number < other.mod.Number
}

// proveLocked notes that the thread s itself called through l. What l stood for
// by guess goes to the server that stood for s.
func (p *threads) proveLocked(l *link, s *session.Session) {
	if l.identity.Host() != session.HostServer || l.proven {
		return
	}
	l.proven = true
	for id := range l.sessions {
		if id == s.ID {
			continue
		}
		delete(l.sessions, id)
		guessed, live := p.roster.Get(id)
		if other := p.guessedServerLocked(s.ID); live && other != nil {
			delete(other.sessions, s.ID)
			p.identity.attachLocked(other, guessed)
		}
		p.identity.leaveUnlessHeldLocked(id)
	}
}

// guessedServerLocked finds a server that stands for the session by guess.
func (p *threads) guessedServerLocked(id string) *link {
	for _, l := range p.conns {
		if l.identity != nil && l.identity.Host() == session.HostServer && !l.proven && l.sessions[id] {
			return l
		}
	}
	return nil
}

// handOnLocked gives a session that l held by guess to another server of the
// same host, now that l has ended: it may have been another thread's.
func (p *threads) handOnLocked(l *link, id string) {
	s, live := p.roster.Get(id)
	if !live || l.identity == nil || l.identity.Host() != session.HostServer || l.proven {
		return
	}
	call := session.HookCall{Kind: s.Kind, Cwd: s.Cwd, Ancestors: []int{l.identity.AgentPID}}
	if next := p.freeServerLocked(call); next != nil {
		p.identity.attachLocked(next, s)
	}
}

// endThread takes a thread off the list that its host says is over. Its server
// may go on and stand for another.
func (p *threads) endThread(s *session.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Host != session.HostServer {
		return
	}
	for _, l := range p.conns {
		delete(l.sessions, s.ID)
	}
	p.identity.leaveUnlessHeldLocked(s.ID)
}

// promoteLocked makes the provisional server below the hook's agent process the
// session that the hook speaks of: a second thread of one codex process.
func (p *threads) promoteLocked(call session.HookCall) (*session.Session, bool) {
	only := p.freeServerLocked(call)
	if only == nil {
		return nil, false
	}
	args := *only.identity
	args.Previous = ""
	s := p.identity.byHostOrNewLocked(only, args, call.SessionID)
	p.identity.attachLocked(only, s)
	return s, true
}
