package presence

import (
	"context"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// A session is identified by its agent's process, and that process by what the kernel
// reports of the connection's peer. The process ids that a client states are those of its
// own namespace. Two agents in two containers may have the same one (RWM-04). Stated ids
// only choose among the processes above the client.

// maxDistance is how many processes, such as shells and wrappers, may be between an agent
// and its hook or server.
const maxDistance = 8

type connKey struct{}

// WithConn returns a context that carries the connection whose request is served.
func WithConn(ctx context.Context, conn *ipc.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// above returns the process at the other end of a connection and those above it, nearest
// first. It returns nil if the process has ended, or is in a process namespace that this
// process cannot see.
func above(conn *ipc.Conn) []proc.Process {
	pid, peer := conn.PeerPID(), conn.Peer()
	if peer == (job.Process{}) { // the system does not report it, and has no namespaces
		pid = conn.Hello().PID
	}
	if pid <= 0 {
		return nil
	}
	chain, chainErr := proc.Chain(pid, maxAncestors)
	self, err := proc.Find(pid)
	if err != nil || chainErr != nil {
		return nil
	}
	if identity, err := proc.Identity(pid); peer.Identity != "" && (err != nil || identity != peer.Identity) {
		return nil // another process has the number by now
	}
	return append([]proc.Process{self}, chain...)
}

// sharesNumbers reports whether the process at the other end has the same process id
// there and here. Both processes are then in one process namespace.
func sharesNumbers(conn *ipc.Conn) bool {
	return conn.PeerPID() == conn.Hello().PID || conn.Peer() == (job.Process{})
}

// AgentOf returns the process id of the agent that a hook's call comes from, as the only
// element. It returns nil if the caller is below no agent of that kind. It also returns nil
// if the session is known by its id and the call does not begin it. Only the nearest agent
// counts: an agent started by another agent's shell is not that other agent (RWM-03).
func (p Callers) AgentOf(ctx context.Context, call session.HookCall) []int {
	conn, _ := ctx.Value(connKey{}).(*ipc.Conn)
	if conn == nil || call.Event != session.EventStart && p.IsLive(call.Kind, call.SessionID) {
		return nil
	}
	chain := above(conn)
	p.Lock()
	known := map[int]bool{}
	for _, l := range p.Conns {
		if l.Identity != nil {
			known[l.Identity.AgentPID] = true
		}
	}
	for _, serverless := range p.Serverless {
		known[serverless.agent.PID] = true
	}
	p.Unlock()
	at, kind := agent.Nearest(near(chain), func(pid int) bool { return known[pid] })
	if at < 0 || kind != "" && kind != call.Kind {
		return nil
	}
	return []int{chain[at].PID}
}

// near returns the part of a chain that is searched for an agent.
func near(chain []proc.Process) []proc.Process { return chain[:min(len(chain), maxDistance+1)] }

// Live returns the connected session of that kind and host session id.
func (p Callers) Live(kind bridge.AgentKind, hostID string) (*session.Session, bool) {
	p.Lock()
	defer p.Unlock()
	return p.Roster.ByHost(kind, hostID)
}

// WithMod returns the live session of a conversation in an agent whose kind has a mod.
func (p Callers) WithMod(sessionID string) (*session.Session, bool) {
	p.Lock()
	defer p.Unlock()
	return p.WithModLocked(sessionID)
}

// WithModLocked is [Callers.WithMod] for a caller that holds the lock.
func (p Callers) WithModLocked(sessionID string) (*session.Session, bool) {
	for _, kind := range bridge.Kinds() {
		if !bridge.TraitsOf(kind).Mod {
			continue
		}
		if s, live := p.Roster.ByHost(kind, sessionID); live {
			return s, true
		}
	}
	return nil, false
}

// IsLive reports whether a session of that kind and host session id is connected.
func (p Callers) IsLive(kind bridge.AgentKind, hostID string) bool {
	_, live := p.Live(kind, hostID)
	return live
}

// withAgent returns a client's registration with its agent's process as this process sees
// it. The stated process stays if it is the client or above it, and no other agent is
// nearer. Otherwise the nearest process that is an agent of that kind replaces it, or the
// client's parent if there is none.
func withAgent(chain []proc.Process, args api.Register) api.Register {
	if args.AgentPID <= 0 {
		return args
	}
	chain = near(chain)
	at, kind := agent.Nearest(chain, func(int) bool { return false })
	for i, process := range chain {
		if process.PID == args.AgentPID && (at < 0 || i <= at) {
			return args
		}
	}
	switch {
	case at >= 0 && kind == args.Kind:
		args.AgentPID, args.HostKnown = chain[at].PID, true
	case len(chain) > 1:
		args.AgentPID, args.HostKnown = chain[1].PID, false
	default:
		args.AgentPID, args.HostKnown = 0, false
	}
	return args
}

// isNestedLocked reports whether a registering process's agent runs below the agent of
// the live session with that host session id. Such an agent was started from the
// session's shell and inherited its session id.
func (l *Link) isNestedLocked(roster *session.Roster, args api.Register) bool {
	s, live := roster.ByHost(args.Kind, args.SessionID)
	if !live || s.AgentPID <= 1 || s.AgentPID == args.AgentPID || args.AgentPID <= 1 {
		return false
	}
	for _, process := range l.above {
		if process.PID == s.AgentPID {
			return true
		}
	}
	return false
}

// StartsUnknown reports whether a hook reports the start of a process that is not yet
// part of the session: its MCP server has not registered.
func (p Callers) StartsUnknown(s *session.Session, call session.HookCall) bool {
	if call.Event != session.EventStart || call.GoesOn() || len(call.Ancestors) == 0 {
		return false
	}
	p.Lock()
	defer p.Unlock()
	for _, l := range p.Conns {
		if l.Sessions[s.ID] && l.Identity != nil && l.Identity.AgentPID == call.Ancestors[0] {
			return false
		}
	}
	return p.Serverless[s.ID].agent.PID != call.Ancestors[0]
}

// Prompter is a session whose agent asks for permission.
type Prompter struct {
	Name, Cwd string
	AgentPID  int
	Threads   bool // a background server runs the session and reports its prompts
}

// Prompter returns the data that a permission prompt needs of the session that a call
// comes from. ok is false for a delegated job's own session, and for a call of another
// conversation.
func (p Callers) Prompter(s *session.Session, call session.HookCall) (found Prompter, ok bool) {
	p.Lock()
	defer p.Unlock()
	if s.Host == session.HostRunner || s.SessionID != call.SessionID {
		return Prompter{}, false
	}
	return Prompter{Name: s.Name, Cwd: s.Cwd, AgentPID: s.AgentPID, Threads: s.Host == session.HostServer}, true
}

// Thread is a live session that a background server of codex runs.
type Thread struct {
	ID     string // the host session id
	Folder string // where its codex keeps its state
}

// Threads returns the known threads.
func (p Callers) Threads() (threads []Thread) {
	p.Lock()
	defer p.Unlock()
	for _, s := range p.Roster.Live() {
		if bridge.TraitsOf(s.Kind).BackgroundServer && s.Host == session.HostServer && s.SessionID != "" && s.CLIDataDir != "" {
			threads = append(threads, Thread{ID: s.SessionID, Folder: s.CLIDataDir})
		}
	}
	return threads
}
