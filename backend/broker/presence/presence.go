// Package presence is who is here: the connections of a broker, the sessions that
// they are part of, and what waits for those. It says which session a connection is
// part of, whose a hook is, and which agent stands above a process.
package presence

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker/activity"
	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// Presence is the connections, the sessions that they are part of, and the
// sessions' mailboxes. One lock guards the three, for they change as one: a session
// that learns who it is takes another id, and its connections and its mail go with
// it. Seen between two locks it would have its mail twice or not at all, and mail
// could be leased to a connection that has just ended. It is held for memory only,
// never over the store, a file or another process. A method whose name ends in
// Locked is called with it.
type Presence struct {
	sync.Mutex // guards who is here
	Roster     *session.Roster
	Conns      map[*ipc.Conn]*Link
	Boxes      mailbox.Boxes  // by peer id, for live sessions
	Turns      activity.Turns // when sessions were at work
	Serverless Serverless     // live sessions whose MCP server has ended

	opts   Options
	linked int // connections so far
	began  time.Time
}

// Options says what a presence works with. All fields are required.
type Options struct {
	Known    []session.Known                 // sessions of earlier
	Prefs    *wake.Prefs                     // what they chose for themselves
	Settings func() (config.Settings, error) // read anew at each use
	Now      func() time.Time
	Log      *slog.Logger
	// Terminals lists the codexes in terminals of a folder that keep their state in dataDir.
	// Nil asks the system.
	Terminals func(cwd, dataDir string) agent.Terminals
	Changed   func()                           // somebody came, left or learned who it is
	Go        func(task func(context.Context)) // runs a task, until the broker ends at the latest
}

// New is a presence of nobody.
func New(opts Options) *Presence {
	if opts.Terminals == nil {
		opts.Terminals = agent.CodexTerminals
	}
	return &Presence{opts: opts, Roster: session.NewRoster(opts.Known), Conns: map[*ipc.Conn]*Link{}, Boxes: mailbox.Boxes{}, Serverless: Serverless{}, began: opts.Now()}
}

// Link is what the broker keeps of one connection.
type Link struct {
	Conn *ipc.Conn
	// Identity is what Register said; nil before it and for roles without one.
	Identity *api.Register
	Sessions map[string]bool // peer ids of the sessions it is part of
	Leases   mailbox.Holder
	Mod      wake.ModLink
	Host     proc.Named // the process that it belongs to
	server   proc.Named // the process at its other end; the zero value for unknown
	agent    proc.Named // its agent's process as this process sees it; the zero value for unknown
	// above are the process at its other end and those above that one, when it registered.
	above []proc.Process
	// Job is the delegated job that it comes from the inside of, or proved to be; "" for
	// none. It is part of no session but that job's own.
	Job string

	screen screen // of the terminal that shows its conversation
	proven bool   // a call through it told whose it is (see threads.go)
}

// Admit keeps a new connection, which is part of no session yet. job is the delegated
// job that it comes from the inside of, "" for none.
func (p *Presence) Admit(conn *ipc.Conn, job string) {
	p.Lock()
	defer p.Unlock()
	p.linked++
	p.Conns[conn] = &Link{Conn: conn, Job: job, Mod: wake.ModLink{Number: p.linked}, Sessions: map[string]bool{}}
}

// Link is what is kept of a connection, nil when it has ended.
func (p *Presence) Link(conn *ipc.Conn) *Link {
	p.Lock()
	defer p.Unlock()
	return p.Conns[conn]
}

// ForgetLocked removes a connection that has ended: what it had on lease is offered
// again, and sessions that only it held leave, unless its process has ended and their
// agent runs on (HasServerEnded).
func (p *Presence) ForgetLocked(l *Link, serverEnded bool) {
	delete(p.Conns, l.Conn)
	l.Leases.End()
	for id := range l.Sessions {
		p.handOnLocked(l, id)
		if s, live := p.Roster.Get(id); live && serverEnded && !(servers{p}).isHeldLocked(id) && (servers{p}).keepLocked(l, s) {
			p.opts.Changed()
		}
		p.LeaveUnlessHeldLocked(id)
	}
}

// JobBehind is the delegated job that a connection speaks for, "" for none.
func (p *Presence) JobBehind(l *Link) string {
	p.Lock()
	defer p.Unlock()
	return l.Job
}

// IsOf reports whether a peer id is that of a session that the connection is part of,
// or was.
func (p *Presence) IsOf(l *Link, peerID string) bool {
	p.Lock()
	defer p.Unlock()
	id, _ := p.Boxes.Of(peerID)
	return l.Sessions[id]
}

// IsBusy reports whether the session is at work.
func (p *Presence) IsBusy(s *session.Session) bool {
	p.Lock()
	defer p.Unlock()
	return s.Busy
}

// NameLocked is the name of a peer id, or the id itself when nobody had it: old
// stores hold names there.
func (p *Presence) NameLocked(id string) string {
	if known, ok := p.Roster.Known(id); ok {
		return known.Name
	}
	return id
}

// Arrivals is closed at the next arrival for s; asked for before looking, it
// misses none.
func (p *Presence) Arrivals(s *session.Session) (<-chan struct{}, bool) {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil {
		return nil, false
	}
	return box.Arrived(), true
}

// HostsLocked are the host processes that the session's connections belong to; come are
// the names of those of all connections.
func (p *Presence) HostsLocked(id string) (hosts []proc.Named, come map[string]bool) {
	come = map[string]bool{}
	for _, l := range p.Conns {
		come[l.Host.Name] = true
		if l.Sessions[id] {
			hosts = append(hosts, l.Host)
		}
	}
	for other, known := range p.Serverless {
		come[known.host.Name] = true
		if other == id {
			hosts = append(hosts, known.host)
		}
	}
	return hosts, come
}

// TargetOf is the session as decisions see it.
func (p *Presence) TargetOf(s *session.Session) decision.Target {
	p.Lock()
	defer p.Unlock()
	return p.Roster.Target(s)
}

// CheckWords refuses the words that name more than one session (MSG-05).
func (p *Presence) CheckWords(words ...string) error {
	p.Lock()
	defer p.Unlock()
	return p.Roster.CheckWords(words...)
}
