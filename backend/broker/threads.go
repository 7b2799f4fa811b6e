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

// provisionalLocked reports whether a process that registers without an identity
// is no session yet.
func (b *Broker) provisionalLocked(args api.Register) bool {
	switch {
	case args.Shared:
		return true
	case args.Threads && args.Name == "":
		return args.Previous == ""
	default:
		return b.hostHasSessionLocked(args)
	}
}

// freeServerLocked finds the server that a hook's thread may be given to: one
// below the hook's agent that stands for nobody. Of several servers of a host
// with threads it is the one that has waited longest, in the same folder if
// there is one; of any other host nobody can tell.
func (b *Broker) freeServerLocked(call session.HookCall) *link {
	var found *link
	for _, l := range b.conns {
		if l.identity == nil || l.identity.Shared || len(l.sessions) > 0 || l.identity.Kind != call.Kind || !slices.Contains(call.Ancestors, l.identity.AgentPID) {
			continue
		}
		switch {
		case found == nil:
			found = l
		case !l.identity.Threads:
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
func (b *Broker) proveLocked(l *link, s *session.Session) {
	if !l.identity.Threads || l.proven {
		return
	}
	l.proven = true
	for id := range l.sessions {
		if id == s.ID {
			continue
		}
		delete(l.sessions, id)
		guessed, live := b.roster.Get(id)
		if other := b.guessedServerLocked(s.ID); live && other != nil {
			delete(other.sessions, s.ID)
			b.attachLocked(other, guessed)
		}
		b.leaveUnlessHeldLocked(id)
	}
}

// guessedServerLocked finds a server that stands for the session by guess.
func (b *Broker) guessedServerLocked(id string) *link {
	for _, l := range b.conns {
		if l.identity != nil && l.identity.Threads && !l.proven && l.sessions[id] {
			return l
		}
	}
	return nil
}

// handOnLocked gives a session that l held by guess to another server of the
// same host, now that l has ended: it may have been another thread's.
func (b *Broker) handOnLocked(l *link, id string) {
	s, live := b.roster.Get(id)
	if !live || l.identity == nil || !l.identity.Threads || l.proven {
		return
	}
	call := session.HookCall{Kind: s.Kind, Cwd: s.Cwd, Ancestors: []int{l.identity.AgentPID}}
	if next := b.freeServerLocked(call); next != nil {
		b.attachLocked(next, s)
	}
}

// endThread takes a thread off the list that its host says is over. Its server
// may go on and stand for another.
func (b *Broker) endThread(s *session.Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !s.Threads {
		return
	}
	for _, l := range b.conns {
		delete(l.sessions, s.ID)
	}
	b.leaveUnlessHeldLocked(s.ID)
}
