package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
)

// Caller names the session on whose behalf a request is made, when the
// connection alone does not say it (codex and opencode tell it per call).
type Caller struct {
	// Session is a peer id given by Register, "" for the connection's only one.
	Session string `json:"session,omitempty"`
	// SessionID is the host session id that this very call came with.
	SessionID string `json:"sessionId,omitempty"`
	// ChildID is set when the call came from inside a native child.
	ChildID string `json:"childId,omitempty"`
	// ToolUseID lets the broker match the call to a hook that saw it.
	ToolUseID string `json:"toolUseId,omitempty"`
}

// Register makes the connection part of a session (MSG-03).
type Register struct {
	Kind     bridge.AgentKind `json:"kind"`
	Name     string           `json:"name,omitempty"` // "" for the default name
	Cwd      string           `json:"cwd"`
	AgentPID int              `json:"agentPid"` // the host's process
	// HostKnown says that AgentPID was seen to be the agent CLI itself, so that
	// two servers below it belong together.
	HostKnown bool `json:"hostKnown,omitempty"`
	// Process names the host's process for good, so that one that comes after it is
	// told apart (ProcessOf). "" lets the broker find out.
	Process   string `json:"process,omitempty"`
	SessionID string `json:"sessionId,omitempty"` // host session id, "" until known
	// CLIDataDir is the folder of the CLI's own store, as far as the environment of
	// the registering process tells (host.CLIDataDir).
	CLIDataDir string `json:"store,omitempty"`
	// Previous is the peer id of an earlier registration of the same process:
	// after a broker restart it keeps its identity.
	Previous  string      `json:"previous,omitempty"`
	Channel   bool        `json:"channel,omitempty"`    // the host shows channel notifications
	Runner    bool        `json:"runner,omitempty"`     // a job runner, not a person's session (HostRunner)
	JobToken  string      `json:"jobToken,omitempty"`   // proves that a runner's session is the job of that name
	Shared    bool        `json:"shared,omitempty"`     // one process for many sessions: it is none itself (HostShared)
	Threads   bool        `json:"threads,omitempty"`    // the host serves many sessions, with a registering process for each (HostServer)
	WakePrefs *WakePolicy `json:"wakePolicy,omitempty"` // nil: as configured
	// Hooks says that an earlier broker heard hooks of the session: the next one
	// need not wait for another to know that there are some.
	Hooks bool `json:"hooks,omitempty"`
	// Leases is mail that an earlier broker leased to this process and that it did
	// not confirm yet: it stays leased, so that nobody shows it a second time.
	Leases []session.Lease `json:"loans,omitempty"`
}

// Host is the flags in one word.
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

// WakePolicy is what a session advertises about being woken (seed 4.4).
type WakePolicy struct {
	AutoWake     bool `json:"autoWake"`
	WakeOnDirect bool `json:"wakeOnDirect"`
	MaxHops      int  `json:"maxHops"`
}

// Registered answers Register. ID is "" while the process is provisional: it
// will be told at the first call that carries an identity.
type Registered struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Note string `json:"note"` // decisions in force, for the MCP instructions
	// Hooks says that hooks reported from the session.
	Hooks bool `json:"hooks,omitempty"`
	// Kinds are the agents whose programs this PC has; empty means that it is not known.
	Kinds []bridge.AgentKind `json:"kinds,omitempty"`
}

// Leave ends one session of a plugin's connection.
type Leave struct {
	ID string `json:"id"`
}

// Peer is a live session as lists show it.
type Peer struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Agent     bridge.AgentKind  `json:"agent"`
	Cwd       string            `json:"cwd"`
	State     string            `json:"state"` // busy or idle
	SessionID *string           `json:"sessionId"`
	Since     bridge.UnixMillis `json:"since"`
	Children  []Child           `json:"children"`

	AutoWake     bool           `json:"autoWake"`
	WakeOnDirect bool           `json:"wakeOnDirect"`
	Unread       int            `json:"unread"`
	Transport    delivery.Way   `json:"transport"` // how mail reaches it, in a word
	Wake         delivery.Wake  `json:"wake"`      // what mail can do while it is idle
	Detail       string         `json:"detail"`    // both in a sentence, and the problem
	CLI          string         `json:"cli"`       // the version of its agent CLI on this PC and those that Bridge was tried with, in words
	Problem      string         `json:"problem"`   // what is wrong with its agent CLI, in sentences; "" when nothing is
	Reach        delivery.Words `json:"reach"`     // what the page says of it
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
	// Remote are the sessions of paired PCs that can be written to.
	Remote []RemoteSession `json:"remote,omitempty"`
}

// AutoWakeArgs sets the calling session's own preference.
type AutoWakeArgs struct {
	Caller
	Enabled bool `json:"enabled"`
}

// SessionCalls are the operations about sessions.
type SessionCalls struct{ link Link }

// Register makes the connection part of a session.
func (c SessionCalls) Register(ctx context.Context, args Register) (Registered, error) {
	return OpRegister.Call(ctx, c.link, args)
}

// Leave ends one session of a plugin's connection.
func (c SessionCalls) Leave(ctx context.Context, args Leave) error {
	_, err := OpLeave.Call(ctx, c.link, args)
	return err
}

// Peers lists the live sessions.
func (c SessionCalls) Peers(ctx context.Context, args Caller) (PeersResult, error) {
	return OpPeers.Call(ctx, c.link, args)
}

// AutoWake sets the session's preference.
func (c SessionCalls) AutoWake(ctx context.Context, args AutoWakeArgs) error {
	_, err := OpAutoWake.Call(ctx, c.link, args)
	return err
}
