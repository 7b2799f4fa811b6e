// Package presence tracks the connections of a broker, the sessions that they are part
// of, and their mailboxes. It finds the session of a connection or a hook, and the agent
// above a process.
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

// Presence holds the connections, their sessions, and the sessions' mailboxes. One lock
// guards all three, because they change together: an identified session takes another id,
// and its connections and mail move with it. Between two locks its mail would appear
// twice or not at all, and mail could be leased to an ended connection. The lock is held
// for memory only, never during access to the store, a file or a process. Methods named
// …Locked require it.
type Presence struct {
	sync.Mutex // guards the fields below
	Roster     *session.Roster
	Conns      map[*ipc.Conn]*Link
	Boxes      mailbox.Boxes  // by peer id, for live sessions
	Turns      activity.Turns // when sessions were at work
	Serverless Serverless     // live sessions whose MCP server has ended

	opts   Options
	linked int // connections so far
	began  time.Time
}

// Options configures a [Presence]. All fields except Terminals are required.
type Options struct {
	Known    []session.Known                 // sessions of earlier brokers
	Prefs    *wake.Prefs                     // the sessions' own choices
	Settings func() (config.Settings, error) // read from the file at each use
	Now      func() time.Time
	Log      *slog.Logger
	// Terminals lists the codexes in terminals of a folder that keep their state in
	// dataDir. If nil, it is read from the system.
	Terminals func(cwd, dataDir string) agent.Terminals
	Changed   func()                           // called after a session joined, left or was identified
	Go        func(task func(context.Context)) // runs a task, at most until the broker ends
}

// New returns a presence without connections and live sessions.
func New(opts Options) *Presence {
	if opts.Terminals == nil {
		opts.Terminals = agent.CodexTerminals
	}
	return &Presence{opts: opts, Roster: session.NewRoster(opts.Known), Conns: map[*ipc.Conn]*Link{}, Boxes: mailbox.Boxes{}, Serverless: Serverless{}, began: opts.Now()}
}

// Link is the broker's state of one connection.
type Link struct {
	Conn *ipc.Conn
	// Identity is the registration of the connection, nil before it and for roles without one.
	Identity *api.Register
	Sessions map[string]bool // peer ids of its sessions
	Leases   mailbox.Holder
	Mod      wake.ModLink
	Host     proc.Named // the process that the connection belongs to
	server   proc.Named // the process at its other end; the zero value if unknown
	agent    proc.Named // its agent's process as this process sees it; the zero value if unknown
	// above holds the process at its other end and the processes above it, as of the registration.
	above []proc.Process
	// Job is the delegated job whose process this is, or that it proved to be; "" for
	// none. The connection is part of that job's session only.
	Job string

	screen screen // of the terminal that shows its conversation
	proven bool   // a call on the connection identified it (see threads.go)
}

// Admit adds a new connection without a session. job is the delegated job that it comes
// from inside of, "" for none.
func (p *Presence) Admit(conn *ipc.Conn, job string) {
	p.Lock()
	defer p.Unlock()
	p.linked++
	p.Conns[conn] = &Link{Conn: conn, Job: job, Mod: wake.ModLink{Number: p.linked}, Sessions: map[string]bool{}}
}

// Link returns the state of a connection, nil if it has ended.
func (p *Presence) Link(conn *ipc.Conn) *Link {
	p.Lock()
	defer p.Unlock()
	return p.Conns[conn]
}

// ForgetLocked removes an ended connection. The mail that it leased is offered again.
// Sessions that only it held leave, unless its process has ended and their agent still
// runs (HasServerEnded).
func (p *Presence) ForgetLocked(l *Link, serverEnded bool) {
	delete(p.Conns, l.Conn)
	l.Leases.End()
	for id := range l.Sessions {
		p.handOnLocked(l, id)
		if s, live := p.Roster.Get(id); live && serverEnded && !(servers{p}).isHeldLocked(id) && (servers{p}).retainLocked(l, s) {
			p.opts.Changed()
		}
		p.LeaveUnlessHeldLocked(id)
	}
}

// JobBehind returns the delegated job that a connection speaks for, "" for none.
func (p *Presence) JobBehind(l *Link) string {
	p.Lock()
	defer p.Unlock()
	return l.Job
}

// IsOf reports whether a peer id is or was that of a session of the connection.
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

// NameLocked returns the name of a peer id. If no session had the id, it returns the id
// itself, because old stores hold names there.
func (p *Presence) NameLocked(id string) string {
	if known, ok := p.Roster.Known(id); ok {
		return known.Name
	}
	return id
}

// Arrivals returns a channel that is closed at the next arrival for s. A caller that gets
// it before it reads the mail misses no arrival.
func (p *Presence) Arrivals(s *session.Session) (<-chan struct{}, bool) {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil {
		return nil, false
	}
	return box.Arrived(), true
}

// HostsLocked returns the host processes of the session's connections. come holds the
// names of the host processes of all connections.
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

// TargetOf returns the session as a target of decisions.
func (p *Presence) TargetOf(s *session.Session) decision.Target {
	p.Lock()
	defer p.Unlock()
	return p.Roster.Target(s)
}

// CheckWords fails if one of the targets addresses more than one session (MSG-05).
func (p *Presence) CheckWords(targets ...string) error {
	p.Lock()
	defer p.Unlock()
	return p.Roster.CheckWords(targets...)
}
