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

// A session is told by its agent's process, and that by what the kernel says of the
// process at the other end of a connection. The numbers that a client states are those of
// its own namespace, where two agents in two containers have the same one (RWM-04). They
// only choose among the processes that are above the client anyway.

// maxDistance is how many processes a hook or a server may have below its agent, such as
// shells and wrappers.
const maxDistance = 8

type connKey struct{}

// WithConn returns a context that names the connection whose request is served.
func WithConn(ctx context.Context, conn *ipc.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// above returns the process at the other end of a connection and the processes above it,
// nearest first. It returns none for a process that has ended, and for one in a namespace
// of process numbers that this process cannot see.
func above(conn *ipc.Conn) []proc.Process {
	pid, peer := conn.PeerPID(), conn.Peer()
	if peer == (job.Process{}) { // the system does not tell, and has no namespaces
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
		return nil // the number is another process's by now
	}
	return append([]proc.Process{self}, chain...)
}

// sharesNumbers reports whether the process at the other end has the number there that
// this process sees: then both are in one namespace of process numbers.
func sharesNumbers(conn *ipc.Conn) bool {
	return conn.PeerPID() == conn.Hello().PID || conn.Peer() == (job.Process{})
}

// AgentOf returns the process of the agent that a hook's call comes from, as the only
// element; none where the caller is below no agent of that kind, or where the session is
// known by its id and the call does not begin it. Only the nearest agent counts: one that
// another agent's shell has started is not that other agent (RWM-03).
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

// near returns the part of a chain in which an agent is looked for.
func near(chain []proc.Process) []proc.Process { return chain[:min(len(chain), maxDistance+1)] }

// Live returns the connected session of that kind and host session id.
func (p Callers) Live(kind bridge.AgentKind, hostID string) (*session.Session, bool) {
	p.Lock()
	defer p.Unlock()
	return p.Roster.ByHost(kind, hostID)
}

// IsLive reports whether a session of that kind and host session id is connected.
func (p Callers) IsLive(kind bridge.AgentKind, hostID string) bool {
	_, live := p.Live(kind, hostID)
	return live
}

// withAgent returns what a client says of itself with the process of its agent as this
// process sees it. The stated process stays where it is the client or above it, and no
// other agent is nearer. Otherwise the nearest process that is an agent of that kind
// takes its place, or the client's parent where none is.
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

// isNestedLocked reports whether the agent of a registering process runs below the agent
// of the live session with that host session id: then it was started from the session's
// shell, and what it says of its session id was inherited.
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

// StartsUnknown reports whether a hook tells of the start of a process that is
// not part of the session yet: its MCP server has not registered.
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
	Threads   bool // a background server runs it, which tells of its prompts itself
}

// Prompter returns what a permission prompt needs to know of the session that a call
// comes from. It is not ok for a delegated job's own session, and where the call is of
// another conversation.
func (p Callers) Prompter(s *session.Session, call session.HookCall) (found Prompter, ok bool) {
	p.Lock()
	defer p.Unlock()
	if s.Host == session.HostRunner || s.SessionID != call.SessionID {
		return Prompter{}, false
	}
	return Prompter{Name: s.Name, Cwd: s.Cwd, AgentPID: s.AgentPID, Threads: s.Host == session.HostServer}, true
}

// Thread is a live session that a background server of codex's runs.
type Thread struct {
	ID     string // the host session id
	Folder string // where its codex keeps its state
}

// Threads lists the threads that are known.
func (p Callers) Threads() (threads []Thread) {
	p.Lock()
	defer p.Unlock()
	for _, s := range p.Roster.Live() {
		if s.Kind == bridge.Codex && s.Host == session.HostServer && s.SessionID != "" && s.CLIDataDir != "" {
			threads = append(threads, Thread{ID: s.SessionID, Folder: s.CLIDataDir})
		}
	}
	return threads
}
