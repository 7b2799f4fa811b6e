package broker

import (
	"slices"
	"sync"

	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/decision"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/proc"
	"bridge/backend/reach"
	"bridge/backend/session"
)

// live is who is here: the connections, the sessions that they are part of, and the
// sessions' mailboxes. One lock guards the three, for they change as one: a session
// that learns who it is takes another id, and its connections and its mail go with
// it. Seen between two locks it would have its mail twice or not at all, and mail
// could be leased to a connection that has just ended. It is held for memory only,
// never over the store, a file or another process.
type live struct {
	mu     sync.Mutex // guards who is here
	roster *session.Roster
	conns  map[*ipc.Conn]*link
	linked int           // connections so far
	boxes  mailbox.Boxes // by peer id, for live sessions
}

// link is what the broker keeps of one connection.
type link struct {
	conn *ipc.Conn
	// identity is what Register said; nil before it and for roles without one.
	identity *api.Register
	sessions map[string]bool // peer ids of the sessions it is part of
	proven   bool            // a call through it told whose it is (see threads.go)
	leases   mailbox.Holder
	mod      wake.ModLink
	host     proc.Named // the process that it belongs to
}

func (v *live) isBusy(s *session.Session) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return s.Busy
}

// nameLocked is the name of a peer id, or the id itself when nobody had it: old
// stores hold names there.
func (v *live) nameLocked(id string) string {
	if known, ok := v.roster.Known(id); ok {
		return known.Name
	}
	return id
}

// arrivals is closed at the next arrival for s; asked for before looking, it
// misses none.
func (v *live) arrivals(s *session.Session) (<-chan struct{}, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	box := v.boxes[s.ID]
	if box == nil {
		return nil, false
	}
	return box.Arrived(), true
}

// hasModLocked reports whether a mod said hello for the very conversation that
// the session is in. A channel goes before it (CHT-03).
func (v *live) hasModLocked(s *session.Session) bool {
	box := v.boxes[s.ID]
	return s.Kind == bridge.Claude && !s.Channel && box != nil && box.Mod.IsIn(s.SessionID)
}

// keptForModLocked tells which mail of s its mod is to have: no hook takes it.
func (v *live) keptForModLocked(s *session.Session) func(mail.Delivery) bool {
	if !v.hasModLocked(s) {
		return func(mail.Delivery) bool { return false }
	}
	return mail.IsForMod
}

// forHooksLocked is free without what a mod is to have.
func (v *live) forHooksLocked(s *session.Session, free []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(free, v.keptForModLocked(s))
}

// hostsLocked are the host processes that the session's connections belong to.
func (v *live) hostsLocked(id string) (hosts []proc.Named) {
	for _, l := range v.conns {
		if l.sessions[id] {
			hosts = append(hosts, l.host)
		}
	}
	return hosts
}

func (v *live) targetOf(s *session.Session) decision.Target {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.roster.Target(s)
}

// factsLocked is what the table of transports asks of a session.
func (v *live) factsLocked(s *session.Session) reach.Facts {
	facts := reach.Facts{
		Kind: s.Kind, Name: s.Name, SessionID: s.SessionID, Busy: s.Busy, Channel: s.Channel, Plugin: s.Plugin, Hooks: s.HooksSeen,
		Threads: s.Host == session.HostServer, Mod: v.hasModLocked(s), AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect,
	}
	if box := v.boxes[s.ID]; box != nil {
		facts.Waiting, facts.Failed = box.Hooks.Waits(), box.Queue.Problem() != ""
	}
	return facts
}

// wakeLocked is the way by which m starts a turn of s now, "" where it starts none.
func (v *live) wakeLocked(s *session.Session, m bridge.Message) mail.Via {
	return mail.WakeNow(m, s, v.factsLocked(s))
}

// checkWords refuses the words that name more than one session (MSG-05).
func (v *live) checkWords(words ...string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.roster.CheckWords(words...)
}
