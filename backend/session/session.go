// Package session holds who is connected: the identity of a session over
// reloads and restarts, its name, how a target is resolved, its native
// children, and what a hook call is (rows MSG-03, MSG-05, MSG-09). It does no
// I/O and is not safe for concurrent use: the broker guards it.
package session

import (
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/decision"
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
	SessionID string // host session id, "" until known
	Since     int64  // Unix epoch milliseconds
	Busy      bool
	Runner    bool // a job runner: gets no decisions
	Wake      Policy
	Children  []Child

	// HooksSeen says that a hook or plugin reported from this session, so its
	// busy state is theirs to tell.
	HooksSeen bool
	Plugin    bool
	Channel   bool
}

// Child is a native child of a session, as its host reported it.
type Child struct {
	ID    string
	Title string
	Done  bool
}

// Policy is what a session advertises about being woken (seed 4.4).
type Policy struct {
	AutoWake     bool
	WakeOnDirect bool
	MaxHops      int
}

// Target returns s as the decision rules see it.
func (s *Session) Target() decision.Target {
	return decision.Target{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, Cwd: s.Cwd}
}

// Address returns s as the sender of a message.
func (s *Session) Address() bridge.Address {
	return bridge.Address{ID: s.ID, Name: s.Name, Agent: s.Kind}
}

// SetChild records a native child's start or end; the newest maxChildren are
// kept.
func (s *Session) SetChild(child Child) {
	at := slices.IndexFunc(s.Children, func(c Child) bool { return c.ID == child.ID })
	if at < 0 {
		s.Children = append(s.Children, child)
		if len(s.Children) > maxChildren {
			s.Children = s.Children[1:]
		}
		return
	}
	if child.Title == "" {
		child.Title = s.Children[at].Title
	}
	s.Children[at] = child
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
