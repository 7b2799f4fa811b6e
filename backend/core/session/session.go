// Package session holds who is connected: the identity of a session over
// reloads and restarts, its name, how a target is resolved, its native
// children, and what a hook call is (rows MSG-03, MSG-05, MSG-09). It does no
// I/O and is not safe for concurrent use: the broker guards it.
package session

import (
	"slices"

	"bridge/backend/core/bridge"
)

// Session is one live session of an agent CLI. Several connections may belong
// to it: its MCP server, a second one after a reload, its plugin.
type Session struct {
	ID        string // peer id, stable over restarts of a known host session
	Kind      bridge.AgentKind
	Name      string
	named     bool // Name was asked for: learning who the session is keeps it
	Cwd       string
	AgentPID  int
	Process   string // of the host, named for good; "" where that is not known
	SessionID string // host session id, "" until known
	Since     int64  // Unix epoch milliseconds
	Busy      bool
	Host      Host
	Wake      Policy
	Children  []Child
	// ChildrenNote is a sentence why the CLI's own store tells nothing of the
	// children, "" when it does.
	ChildrenNote string
	// CLIDataDir is the folder of the CLI's own store as the CLI's environment names
	// it, "" until one of its processes said so.
	CLIDataDir string

	// HooksSeen says that a hook or plugin reported from this session, so its
	// busy state is theirs to tell.
	HooksSeen bool
	Plugin    bool
	Channel   bool
	// Serverless says that its MCP server has ended while its agent runs on: it has no
	// tools of Bridge, and hooks alone bring its mail.
	Serverless bool
	// Ended says that its last hook told of its end.
	Ended bool
}

// Host is what kind of process serves a session.
type Host int

const (
	// HostOwn is the CLI's own process, for this session alone.
	HostOwn Host = iota
	// HostServer serves several sessions from one process, with a registering
	// process for each: codex's background server.
	HostServer
	// HostShared serves several sessions, and one process registers for all of
	// them, which is none itself: opencode.
	HostShared
	// HostRunner runs a delegated job; a session of it gets no decisions.
	HostRunner
)

// Child is a native child of a session, as events of its host and the CLI's own
// store tell it.
type Child struct {
	ID    string
	Title string
	Done  bool
	At    int64 // when it was so, Unix epoch milliseconds
	// Stored says that the CLI's own store holds the child under this session.
	// An event only claims it.
	Stored bool
}

// State returns how the child is shown: busy or done.
func (c Child) State() string {
	if c.Done {
		return "done"
	}
	return "busy"
}

// Policy is what a session advertises about being woken (seed 4.4).
type Policy struct {
	AutoWake     bool
	WakeOnDirect bool
	MaxHops      int
}

// Address returns s as the sender of a message.
func (s *Session) Address() bridge.Address {
	return bridge.Address{ID: s.ID, Name: s.Name, Agent: s.Kind}
}

// setChild takes in a word about a native child; the newest maxChildren are
// kept.
func (s *Session) setChild(said Child) (changed bool) {
	at := slices.IndexFunc(s.Children, func(c Child) bool { return c.ID == said.ID })
	if at < 0 {
		s.Children = append(s.Children, said)
		if len(s.Children) > maxChildren {
			s.Children = s.Children[1:]
		}
		return true
	}
	before := s.Children[at]
	after := before.with(said)
	s.Children[at] = after
	return after.Title != before.Title || after.Done != before.Done
}

// with is c after another word about it, from an event or from the store: the
// newer one says whether it is at work, and the store, which knows its task,
// says how it is called.
func (c Child) with(said Child) Child {
	if said.Title != "" && (said.Stored || !c.Stored) {
		c.Title = said.Title
	}
	if said.At >= c.At {
		c.Done, c.At = said.Done, said.At
	}
	c.Stored = c.Stored || said.Stored
	return c
}

// maxChildren bounds the native children remembered for one session.
const maxChildren = 200

// Known is a session that was seen before and may be away: mail to it waits.
type Known struct {
	ID        string
	Name      string
	Kind      bridge.AgentKind
	SessionID string
}
