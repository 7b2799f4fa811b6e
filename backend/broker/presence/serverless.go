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

// No agent starts its MCP server again when that one has ended, but its hooks go on. Such a
// session stays on the list until its agent ends, and gets its mail by its hooks (RWM-25).

// Serverless are the live sessions whose MCP server has ended while their agent runs, by
// peer id. The lock of [Presence] guards them.
type Serverless map[string]serverless

// serverless is what is known of the agent of a session without a server.
type serverless struct {
	agent proc.Named // its process, as this process sees it
	host  proc.Named // the same process, by the name that the store knows
}

const (
	// endPause is how often a process is looked at until it has ended.
	endPause = 250 * time.Millisecond
	// serverPause is for how long the end of a server is waited for that has closed its
	// connection.
	serverPause = 250 * time.Millisecond
	// returnPause is how long the servers of an earlier broker may take to come: they try
	// again every four seconds, and wait five for an answer.
	returnPause = 15 * time.Second
)

// servers tells which sessions have no MCP server, and keeps them on the list.
type servers struct{ *Presence }

// HasServerEnded reports whether the process of a connection that has closed has ended, as
// far as one of its sessions may stay for that. A server that runs on comes back, and holds
// mail that it may have shown: its session leaves until then. HasServerEnded waits a moment
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

// mayStay reports whether a session of the connection can be kept without it. Only the
// agent's own process can tell later that the session is over, so it must be known.
func (l *Link) mayStay(s *session.Session) bool {
	return s.Host == session.HostOwn && s.HooksSeen && !s.Plugin && !s.Ended && s.SessionID != "" && l.agent.PID > 1 && l.agent.PID == s.AgentPID
}

// keepLocked keeps a session whose last server l was, and reports whether it did.
func (p servers) keepLocked(l *Link, s *session.Session) bool {
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

// watchAgent takes a session without a server off the list when its agent has ended. It
// returns when the session has a server again.
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
// needed returns false, which it calls with the lock held.
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

// end forgets that a session has no server: it has one again, or it leaves the list.
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

// ofAgent returns the peer id of the session without a server that the agent with that
// process id has, "" for none.
func (all Serverless) ofAgent(pid int) string {
	for id, known := range all {
		if known.agent.PID == pid {
			return id
		}
	}
	return ""
}

// serverlessOfLocked returns the session without a server that a new server is for: the
// one of its agent. It returns nil where there is none.
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

// serveAgainLocked gives s what a server says of it, if s had none.
func (p servers) serveAgainLocked(s *session.Session, args *api.Register) {
	if !s.Serverless || args == nil {
		return
	}
	p.Serverless.end(s)
	s.Channel, s.Wake = args.Channel, p.opts.wakePolicy(*args)
	p.applyPrefsLocked(s)
}

// agentWithoutServer returns the agent's process of a hook whose session reviveLocked may
// put on the list, the zero value of another hook. A server that runs has mail of an
// earlier broker, and tells which when it comes to this one: it is waited for.
func (p servers) agentWithoutServer(call session.HookCall) proc.Named {
	switch {
	case len(call.Ancestors) != 1, call.SessionID == "", call.ChildID != "", call.Kind == bridge.OpenCode:
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

// reviveLocked puts a known session on the list that a hook of its own reports from: its
// server had ended before this broker began. It returns nil for an unknown session, for
// one whose agent is not known, and for a thread of a background server.
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
