package presence

import (
	"context"
	"slices"
	"strings"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// No agent restarts an MCP server that has ended, but its hooks still run. Such a session
// stays on the roster until its agent ends, and gets its mail by its hooks (RWM-25).

// Serverless holds the live sessions whose MCP server has ended while their agent runs,
// by peer id. The lock of [Presence] guards it.
type Serverless map[string]serverless

// serverless describes the agent of a session without a server.
type serverless struct {
	agent proc.Named // its process, as this process sees it
	host  proc.Named // the same process, by its name in the store
}

const (
	// endPause is the interval at which a process is polled until it has ended.
	endPause = 250 * time.Millisecond
	// serverPause is how long to wait for the end of a server that has closed its
	// connection.
	serverPause = 250 * time.Millisecond
	// returnPause is how long the servers of an earlier broker may take to reconnect.
	// They retry every four seconds, and wait five seconds for an answer.
	returnPause = 15 * time.Second
)

// servers tracks the sessions that have no MCP server and keeps them on the roster.
type servers struct{ *Presence }

// HasServerEnded reports whether the process of a closed connection has ended, if one of
// its sessions may stay then. A server that still runs reconnects, and holds mail that it
// may have shown. Its session leaves until then. HasServerEnded waits up to serverPause
// for a process that is about to end.
func (p Callers) HasServerEnded(conn *ipc.Conn) bool {
	p.Lock()
	l, stays := p.Conns[conn], false
	if l != nil {
		for id := range l.Sessions {
			s, live := p.Roster.Get(id)
			stays = stays || live && l.mayStay(s)
		}
	}
	p.Unlock()
	if !stays {
		return false
	}
	ticks, end := time.NewTicker(serverPause/50), time.NewTimer(serverPause)
	defer ticks.Stop()
	defer end.Stop()
	for !l.server.Ended() {
		select {
		case <-ticks.C:
		case <-end.C:
			return false
		}
	}
	return true
}

// mayStay reports whether a session of the connection can stay without it. The agent's
// own process must be known, because only its end shows later that the session is over.
func (l *Link) mayStay(s *session.Session) bool {
	return s.Host == session.HostOwn && s.HooksSeen && !s.Plugin && !s.Ended && s.SessionID != "" && l.agent.PID > 1 && l.agent.PID == s.AgentPID
}

// retainLocked keeps a session whose last server was l, and reports whether it did.
func (p servers) retainLocked(l *Link, s *session.Session) bool {
	if !l.mayStay(s) {
		return false
	}
	p.addServerlessLocked(s, serverless{agent: l.agent, host: l.Host})
	return true
}

// addServerlessLocked marks a session as one without a server until its agent ends.
func (p servers) addServerlessLocked(s *session.Session, known serverless) {
	s.Serverless, s.Channel = true, false
	p.Serverless[s.ID] = known
	p.opts.Go(func(ctx context.Context) { p.watchAgent(ctx, s, known.agent) })
}

// watchAgent removes a session without a server from the roster when its agent has ended.
// It returns if the session has a server again.
func (p servers) watchAgent(ctx context.Context, s *session.Session, process proc.Named) {
	waits := func() bool { return p.Serverless[s.ID].agent == process }
	if !p.waitForEnd(ctx, process, waits) {
		return
	}
	p.Lock()
	defer p.Unlock()
	if waits() {
		p.Serverless.end(s)
		p.LeaveUnlessHeldLocked(s.ID)
	}
}

// waitForEnd waits until a process has ended. It returns false if ctx ends first, or if
// needed returns false. It calls needed with the lock held.
func (p servers) waitForEnd(ctx context.Context, process proc.Named, needed func() bool) bool {
	ticks := time.NewTicker(endPause)
	defer ticks.Stop()
	for !process.Ended() {
		select {
		case <-ctx.Done():
			return false
		case <-ticks.C:
		}
		p.Lock()
		goOn := needed()
		p.Unlock()
		if !goOn {
			return false
		}
	}
	return true
}

// end removes the mark of a session without a server: it has a server again, or leaves the roster.
func (all Serverless) end(s *session.Session) {
	delete(all, s.ID)
	s.Serverless = false
}

// move gives the session another peer id.
func (all Serverless) move(from, to string) {
	if known, waits := all[from]; waits {
		delete(all, from)
		all[to] = known
	}
}

// ofAgent returns the peer id of the session without a server whose agent has that
// process id, "" for none.
func (all Serverless) ofAgent(pid int) string {
	for id, known := range all {
		if known.agent.PID == pid {
			return id
		}
	}
	return ""
}

// serverlessOfLocked returns the session without a server to which a new server belongs,
// by its agent. It returns nil if there is none.
func (p servers) serverlessOfLocked(args api.Register) *session.Session {
	if !args.HostKnown || args.Name != "" || args.Host() != session.HostOwn {
		return nil
	}
	s, live := p.Roster.Get(p.Serverless.ofAgent(args.AgentPID))
	if !live || s.Kind != args.Kind {
		return nil
	}
	return s
}

// serveAgainLocked applies the registration of a server to s, if s had no server.
func (p servers) serveAgainLocked(s *session.Session, args *api.Register) {
	if !s.Serverless || args == nil {
		return
	}
	p.Serverless.end(s)
	s.Channel, s.Wake = args.Channel, p.opts.wakePolicy(*args)
	p.applyPrefsLocked(s)
}

// agentWithoutServer returns the agent's process of a hook whose session reviveLocked may
// add to the roster, else the zero value. A running server has mail of an earlier broker
// and reports it when it reconnects, so the broker waits for that server.
func (p servers) agentWithoutServer(call session.HookCall) proc.Named {
	switch {
	case len(call.Ancestors) != 1, call.SessionID == "", call.ChildID != "", bridge.TraitsOf(call.Kind).SharedServer:
		return proc.Named{}
	case call.Event == session.EventStart, call.Event == session.EventEnd, p.opts.Now().Sub(p.began) < returnPause:
		return proc.Named{}
	}
	pid := call.Ancestors[0]
	process, err := proc.Find(pid)
	below, belowErr := proc.Below(pid)
	if err != nil || belowErr != nil || agent.KindOf(process) != call.Kind || agent.IsServer(call.Kind, pid) || slices.ContainsFunc(below, isBridgesServer) {
		return proc.Named{}
	}
	return proc.Name(pid)
}

// isBridgesServer reports whether a process is an MCP server of Bridge.
func isBridgesServer(process proc.Process) bool {
	return strings.HasPrefix(process.Name, "bridge-mcp") || strings.HasPrefix(process.Name, "bridge") && slices.Contains(proc.CommandLine(process.PID), "mcp")
}

// reviveLocked adds a known session to the roster when one of its hooks reports. Its
// server had ended before this broker began. It returns nil for an unknown session, for
// one without a known agent, and for a thread of a background server.
func (p servers) reviveLocked(call session.HookCall, process proc.Named) *session.Session {
	id := p.Roster.PriorID(call.Kind, call.SessionID)
	if _, live := p.Roster.Get(id); id == "" || live || process.PID <= 1 {
		return nil
	}
	s := p.newSession(api.Register{Kind: call.Kind, Cwd: call.Cwd, AgentPID: process.PID, Hooks: true, HostKnown: true}, id)
	s.SessionID, s.CLIDataDir = call.SessionID, call.CLIDataDir
	p.joinLocked(s, "")
	p.addServerlessLocked(s, serverless{agent: process, host: process})
	return s
}
