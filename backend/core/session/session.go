// Package session has the live sessions: the identity of a session over reloads and
// restarts, its name, how a target is resolved, its native children, and hook calls
// (rows MSG-03, MSG-05, MSG-09). It does no I/O and is not safe for concurrent use: the
// broker guards it.
package session

import (
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// Session is one live session of an agent CLI. It may have several connections: its MCP
// server, a second one after a reload, its plugin.
type Session struct {
	ID        string // peer id, stable over restarts of a known host session
	Kind      bridge.AgentKind
	Name      string
	named     bool // Name was requested: it stays when the session is identified
	Cwd       string
	AgentPID  int
	Process   string // permanent name of the host process; "" if unknown
	SessionID string // host session id, "" until known
	Since     int64  // Unix epoch milliseconds
	Activity
	Host     Host
	Wake     Policy
	Children []Child
	// ChildrenNote is a sentence why the CLI's own store has no data on the children,
	// or "".
	ChildrenNote string
	// CLIDataDir is the folder of the CLI's own store from the CLI's environment, or ""
	// until one of its processes reported it.
	CLIDataDir string

	// HooksSeen reports that a hook or plugin has reported from this session, so hooks
	// determine its busy state.
	HooksSeen bool
	Plugin    bool
	Channel   bool
	// Serverless reports that its MCP server has ended while its agent runs: it has no
	// Bridge tools, and only hooks deliver its mail.
	Serverless bool
	// Ended reports that its last hook reported its end.
	Ended bool
}

// Activity is whether a turn is in progress in a session.
type Activity struct {
	Busy bool
	// UnknownSince is the time, in Unix epoch milliseconds, since which Busy is unknown
	// and false: this broker has received no hook of the session, an earlier broker did.
	// It is 0 if Busy is known.
	UnknownSince int64
}

// Host is the kind of process that serves a session.
type Host int

const (
	// HostOwn is the CLI's own process, for this session alone.
	HostOwn Host = iota
	// HostServer serves several sessions from one process, with a registering process
	// for each: codex's background server.
	HostServer
	// HostShared serves several sessions. One process, which is no session, registers
	// all of them: opencode.
	HostShared
	// HostRunner runs a delegated job; its session gets no decisions.
	HostRunner
)

// Child is a native child of a session, from events of its host and the CLI's own
// store.
type Child struct {
	ID    string
	Title string
	Done  bool
	At    int64 // the time of that state, Unix epoch milliseconds
	// Stored reports that the CLI's own store has the child under this session. An
	// event only claims it.
	Stored bool
}

// State returns the child's state for display: busy or done.
func (c Child) State() string {
	if c.Done {
		return "done"
	}
	return "busy"
}

// Policy is the wake policy that a session announces (seed 4.4).
type Policy struct {
	AutoWake     bool
	WakeOnDirect bool
	MaxHops      int

	// The limits of wakes for mail of agents (QUI-03). 0 means no limit.
	WakesPerHour int
	BetweenWakes time.Duration
}

// Address returns s as the sender of a message.
func (s *Session) Address() bridge.Address {
	return bridge.Address{ID: s.ID, Name: s.Name, Agent: s.Kind}
}

// setChild records data about a native child, and reports whether it changed; it keeps
// the newest maxChildren.
func (s *Session) setChild(child Child) (changed bool) {
	at := slices.IndexFunc(s.Children, func(c Child) bool { return c.ID == child.ID })
	if at < 0 {
		s.Children = append(s.Children, child)
		if len(s.Children) > maxChildren {
			s.Children = s.Children[1:]
		}
		return true
	}
	before := s.Children[at]
	after := before.with(child)
	s.Children[at] = after
	return after.Title != before.Title || after.Done != before.Done
}

// with returns c updated with other data, from an event or from the store. The newer
// one decides whether the child is busy. The store has priority for its title, because
// it knows the task.
func (c Child) with(child Child) Child {
	if child.Title != "" && (child.Stored || !c.Stored) {
		c.Title = child.Title
	}
	if child.At >= c.At {
		c.Done, c.At = child.Done, child.At
	}
	c.Stored = c.Stored || child.Stored
	return c
}

// maxChildren limits the native children stored for one session.
const maxChildren = 200

// Known is a session that was seen before and may be away: mail to it waits.
type Known struct {
	ID        string
	Name      string
	Kind      bridge.AgentKind
	SessionID string
}
