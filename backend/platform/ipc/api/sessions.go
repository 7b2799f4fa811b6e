package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
)

// Caller names the session of a request if the connection serves several (codex and
// opencode name it in each call).
type Caller struct {
	// Session is a peer id from Register, or "" for the connection's only session.
	Session string `json:"session,omitempty"`
	// SessionID is the host session id of this call.
	SessionID string `json:"sessionId,omitempty"`
	// ChildID is set if the call came from a native child.
	ChildID string `json:"childId,omitempty"`
	// ToolUseID lets the broker match the call to its hook.
	ToolUseID string `json:"toolUseId,omitempty"`
}

// Register adds the connection to a session (MSG-03).
type Register struct {
	Kind     bridge.AgentKind `json:"kind"`
	Name     string           `json:"name,omitempty"` // "" for the default name
	Cwd      string           `json:"cwd"`
	AgentPID int              `json:"agentPid"` // the host's process
	// HostKnown means that AgentPID is known to be the agent CLI itself, so two
	// servers below it belong together.
	HostKnown bool `json:"hostKnown,omitempty"`
	// Process is the permanent name of the host's process, so that a later process
	// is distinguishable (ProcessOf). "" lets the broker find it.
	Process   string `json:"process,omitempty"`
	SessionID string `json:"sessionId,omitempty"` // host session id, "" until known
	// CLIDataDir is the folder of the CLI's own store, derived from the environment
	// of the registering process (host.CLIDataDir).
	CLIDataDir string `json:"store,omitempty"`
	// Previous is the peer id of an earlier registration of the same process, which
	// keeps its identity after a broker restart.
	Previous  string      `json:"previous,omitempty"`
	Channel   bool        `json:"channel,omitempty"`    // the host shows channel notifications
	Runner    bool        `json:"runner,omitempty"`     // a job runner, not a person's session (HostRunner)
	JobToken  string      `json:"jobToken,omitempty"`   // proves that a runner's session is that job
	Shared    bool        `json:"shared,omitempty"`     // one process for many sessions, not a session itself (HostShared)
	Threads   bool        `json:"threads,omitempty"`    // the host serves many sessions, each with its own registering process (HostServer)
	WakePrefs *WakePolicy `json:"wakePolicy,omitempty"` // nil: as configured
	// Hooks means that an earlier broker received hooks of the session, so the next
	// broker need not wait for one.
	Hooks bool `json:"hooks,omitempty"`
	// Since is when the registering process first knew the session. It survives a broker
	// restart. 0 means now.
	Since bridge.UnixMillis `json:"since,omitempty"`
	// Busy means that the registering process sees the session's turns, and that one is in
	// progress.
	Busy bool `json:"busy,omitempty"`
	// Leases are unacknowledged leases of an earlier broker to this process. They
	// stay leased, so that no other process shows the mail again.
	Leases []session.Lease `json:"loans,omitempty"`
}

// Host returns the flags as one value.
func (r Register) Host() session.Host {
	switch {
	case r.Runner:
		return session.HostRunner
	case r.Shared:
		return session.HostShared
	case r.Threads:
		return session.HostServer
	default:
		return session.HostOwn
	}
}

// WakePolicy is a session's declared wake policy (seed 4.4).
type WakePolicy struct {
	AutoWake     bool `json:"autoWake"`
	WakeOnDirect bool `json:"wakeOnDirect"`
	MaxHops      int  `json:"maxHops"`
}

// Registered is the answer to Register. ID is "" while the process is provisional:
// it gets its id after the first call with an identity.
type Registered struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Note string `json:"note"` // decisions in force, for the MCP instructions
	// Hooks reports that the session has sent hooks.
	Hooks bool `json:"hooks,omitempty"`
	// Kinds lists the agents installed on this PC; empty means unknown.
	Kinds []bridge.AgentKind `json:"kinds,omitempty"`
}

// Leave ends one session of a plugin's connection.
type Leave struct {
	ID string `json:"id"`
}

// Peer is a live session in a list.
type Peer struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Agent     bridge.AgentKind  `json:"agent"`
	Cwd       string            `json:"cwd"`
	State     string            `json:"state"` // busy or idle
	SessionID *string           `json:"sessionId"`
	Since     bridge.UnixMillis `json:"since"`
	Children  []Child           `json:"children"`
	// UnknownSince is the time since which State is unknown, and reported as idle: since
	// the broker's restart, until the next hook. It is 0 if State is known.
	UnknownSince bridge.UnixMillis `json:"unknownSince,omitempty"`

	AutoWake     bool `json:"autoWake"`
	WakeOnDirect bool `json:"wakeOnDirect"`
	// Unread is null if the broker cannot read it.
	Unread bridge.Count `json:"unread"`
	// WokenAt and NextWake are the last and the next possible wake for mail of agents. They
	// are 0 if such mail may wake it now (QUI-03).
	WokenAt   bridge.UnixMillis `json:"wokenAt,omitempty"`
	NextWake  bridge.UnixMillis `json:"nextWake,omitempty"`
	Transport delivery.Way      `json:"transport"` // how mail reaches it, one word
	Wake      delivery.Wake     `json:"wake"`      // what mail can do while it is idle
	Detail    string            `json:"detail"`    // a sentence about both, and the problem
	CLI       string            `json:"cli"`       // the version of its agent CLI on this PC and the tested versions, as text
	Problem   string            `json:"problem"`   // problems of its agent CLI, in sentences; "" without any
	Reach     delivery.Words    `json:"reach"`     // the dashboard's text about it
}

// Child is a native child of a session.
type Child struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	State string `json:"state"`
}

// PeersResult lists the live sessions; Self is the caller's name.
type PeersResult struct {
	Self  string `json:"self"`
	Peers []Peer `json:"peers"`
	// Remote lists the sessions of paired PCs that accept messages.
	Remote []RemoteSession `json:"remote,omitempty"`
}

// AutoWakeArgs sets the calling session's own preference.
type AutoWakeArgs struct {
	Caller
	Enabled bool `json:"enabled"`
}

// SessionCalls holds the operations on sessions.
type SessionCalls struct{ link Link }

// Register adds the connection to a session. It fails with Invalid if Check refuses args. It
// fails with Denied if a job's process registers as another session, or another process as a
// job. It also fails if the session cannot be stored.
func (c SessionCalls) Register(ctx context.Context, args Register) (Registered, error) {
	return OpRegister.Call(ctx, c.link, args)
}

// Leave ends one session of a plugin's connection. It fails with NotFound if the connection is
// not part of that session.
func (c SessionCalls) Leave(ctx context.Context, args Leave) error {
	_, err := OpLeave.Call(ctx, c.link, args)
	return err
}

// Peers lists the live sessions. It fails if the unread messages cannot be counted in the
// store, and with Invalid if the connection has several sessions and args names none.
func (c SessionCalls) Peers(ctx context.Context, args Caller) (PeersResult, error) {
	return OpPeers.Call(ctx, c.link, args)
}

// AutoWake sets the session's preference. It fails with Denied before Register and for a native
// child, and if the preference cannot be stored.
func (c SessionCalls) AutoWake(ctx context.Context, args AutoWakeArgs) error {
	_, err := OpAutoWake.Call(ctx, c.link, args)
	return err
}
