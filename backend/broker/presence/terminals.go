package presence

import (
	"context"
	"slices"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// A terminal shows one conversation. When it begins another or ends, the host may keep
// the first one loaded. The background server of codex keeps it for a minute, opencode
// permanently. Such a conversation is off screen: it is off the roster and is not woken,
// and the session now shown has its name (RWM-24). It returns when a person enters a
// prompt into it.

// terminals tracks which conversations are off screen.
type terminals struct{ *Presence }

// screen is the connection's state of the terminal that shows its conversation.
type screen struct {
	terminal  proc.Named      // the process in the terminal; the zero value if unknown
	closed    bool            // that process has ended
	offScreen map[string]bool // host session ids of conversations that are off screen
}

// seen is what the system reports of terminals, read before the lock is taken.
type seen struct {
	clients agent.Terminals // of codex's background server
	alone   bool            // opencode runs in a terminal and serves no other client
}

// look reads from the system what a registration requires.
func (p terminals) look(args api.Register) (found seen) {
	switch traits := bridge.TraitsOf(args.Kind); {
	case traits.BackgroundServer && args.Host() == session.HostServer:
		found.clients = p.opts.Terminals(args.Cwd, args.CLIDataDir)
	case traits.Terminal == bridge.TerminalOfPlugin && args.HostKnown:
		look, err := proc.Inspect(args.AgentPID)
		found.alone = err == nil && look.Terminal && !agent.IsServer(args.Kind, args.AgentPID)
	}
	return found
}

// beginLocked records that l registers. Another server of an idle codex means that its
// terminal began another conversation. Then beginLocked returns the name for that
// conversation, otherwise "". A native child's server registers while its parent works.
func (p terminals) beginLocked(l *Link, args api.Register, found seen) (name string) {
	way := bridge.TraitsOf(args.Kind).Terminal
	switch {
	case way == bridge.TerminalOfPlugin && found.alone, way == bridge.TerminalOfServers && args.Host() == session.HostOwn && args.HostKnown:
		l.screen.terminal = l.agent
	case args.Host() == session.HostServer:
		l.screen.terminal = p.terminalOfServerLocked(args, found.clients)
		p.watchLocked(l.screen.terminal)
	}
	if way != bridge.TerminalOfServers || args.Previous != "" || args.Name != "" || args.SessionID != "" || l.screen.terminal.Name == "" {
		return ""
	}
	sessions := p.shownLocked(l.screen.terminal, "")
	for _, s := range sessions {
		if s.Busy || !s.HooksSeen || s.SessionID == "" {
			if args.Host() == session.HostServer {
				l.screen.terminal = proc.Named{}
			}
			return ""
		}
	}
	for _, s := range sessions {
		if args.Host() == session.HostOwn { // its next prompt reveals the new id
			s.SessionID = ""
			p.opts.Changed()
			continue
		}
		name = s.Name
		p.leaveScreenLocked(s)
	}
	return name
}

// terminalOfServerLocked returns the terminal that began a server's conversation: the
// newest unassigned one, or the one that a person has just typed into.
func (p terminals) terminalOfServerLocked(args api.Register, clients agent.Terminals) proc.Named {
	assigned := map[string]bool{}
	for _, l := range p.Conns {
		assigned[l.screen.terminal.Name] = true
	}
	found, ok := clients.Newest(func(terminal proc.Named) bool { return !assigned[terminal.Name] })
	if !ok && args.Previous == "" {
		found, _ = clients.TypedInto(p.opts.Now())
	}
	return found
}

// shownLocked returns the sessions whose connections belong to a terminal, except the one
// with the peer id but.
func (p terminals) shownLocked(terminal proc.Named, but string) (sessions []*session.Session) {
	ids := map[string]bool{but: true}
	for _, l := range p.Conns {
		if l.screen.terminal.Name == "" || l.screen.terminal != terminal {
			continue
		}
		for id := range l.Sessions {
			if s, live := p.Roster.Get(id); live && !ids[id] {
				ids[id], sessions = true, append(sessions, s)
			}
		}
	}
	return sessions
}

// leaveScreenLocked removes a conversation from the roster that no terminal shows.
func (p terminals) leaveScreenLocked(s *session.Session) {
	for _, l := range p.Conns {
		if !l.Sessions[s.ID] {
			continue
		}
		delete(l.Sessions, s.ID)
		if l.screen.offScreen == nil {
			l.screen.offScreen = map[string]bool{}
		}
		l.screen.offScreen[s.SessionID] = true
		l.Conn.Push(api.EventLeft, api.Leave{ID: s.ID})
	}
	p.LeaveUnlessHeldLocked(s.ID)
}

// offScreenLocked returns the connections of an off-screen conversation, none for another
// one. An opencode conversation that has called a tool has two connections: first that of
// its plugin, then that of its MCP server.
func (p terminals) offScreenLocked(kind bridge.AgentKind, sessionID string) (links []*Link) {
	for _, l := range p.Conns {
		switch {
		case l.Identity == nil || l.Identity.Kind != kind || sessionID == "" || !l.screen.offScreen[sessionID]:
		case l.Conn.Hello().Role == api.RolePlugin:
			links = slices.Insert(links, 0, l)
		default:
			links = append(links, l)
		}
	}
	return links
}

// isOff reports whether the thread of a server is off screen.
func (l *Link) isOff() bool {
	return l.screen.closed || len(l.screen.offScreen) > 0 && l.Identity.Host() == session.HostServer
}

// terminalsOf returns the terminals that may show a background server's thread whose
// prompt a hook reports. It returns nil if that terminal is known.
func (p terminals) terminalsOf(call session.HookCall) agent.Terminals {
	if !bridge.TraitsOf(call.Kind).BackgroundServer || call.Event != session.EventPrompt || call.ChildID != "" || !p.hasUnknown() {
		return nil
	}
	return p.opts.Terminals(call.Cwd, call.CLIDataDir)
}

// hasUnknown reports whether the terminal of some background server's thread is unknown.
func (p terminals) hasUnknown() bool {
	p.Lock()
	defer p.Unlock()
	for _, l := range p.Conns {
		if l.Identity != nil && l.Identity.Host() == session.HostServer && (l.screen.terminal.Name == "" || l.isOff()) {
			return true
		}
	}
	return false
}

// hookedLocked processes a hook of a conversation. A prompt entered by a person proves
// that the terminal shows the conversation, so the terminal's other conversation goes off
// screen. changed is set if the session's name or roster place changed, off if no
// terminal shows the conversation.
func (p terminals) hookedLocked(call session.HookCall, clients agent.Terminals) (changed, off bool) {
	way := bridge.TraitsOf(call.Kind).Terminal
	if call.ChildID != "" || call.SessionID == "" || way == bridge.TerminalUnknown {
		return false, false
	}
	links := p.offScreenLocked(call.Kind, call.SessionID)
	if len(links) > 0 && call.Event == session.EventPrompt {
		changed = p.showAgainLocked(links, call, clients)
	}
	off = len(links) > 0 && !changed
	s, live := p.Roster.ByHost(call.Kind, call.SessionID)
	if off || !live {
		return false, off && !live
	}
	if call.Event == session.EventPrompt && (way == bridge.TerminalOfServers || call.Prompt != "") {
		changed = p.takeOverLocked(s, clients) || changed
	}
	return changed, false
}

// TurnEnded removes an off-screen conversation from the roster again if only its own call
// had put it back. removed reports whether it did.
func (p Callers) TurnEnded(s *session.Session) (removed bool) {
	p.Lock()
	defer p.Unlock()
	removed = len(terminals(p).offScreenLocked(s.Kind, s.SessionID)) > 0
	if removed {
		terminals(p).leaveScreenLocked(s)
	}
	return removed
}

// showAgainLocked returns a conversation to the roster after a person entered a prompt
// into it. links are its connections, at least one. It returns false if the prompt is not
// known to be a person's.
func (p terminals) showAgainLocked(links []*Link, call session.HookCall, clients agent.Terminals) bool {
	first := links[0]
	switch {
	case bridge.TraitsOf(call.Kind).Terminal == bridge.TerminalOfPlugin && call.Prompt == "":
		return false
	case first.Identity.Host() == session.HostServer:
		typed, ok := clients.TypedInto(p.opts.Now())
		if !ok {
			return false
		}
		first.screen.terminal, first.screen.closed = typed, false
		p.watchLocked(typed)
	}
	s := p.sessionShownLocked(first, call)
	for _, l := range links {
		delete(l.screen.offScreen, call.SessionID)
		p.attachLocked(l, s)
	}
	return true
}

// sessionShownLocked returns the session of a conversation that the terminal of l shows
// again. It is the live one, the terminal's session without a prompt, or a new one.
func (p terminals) sessionShownLocked(l *Link, call session.HookCall) *session.Session {
	if s, live := p.Roster.ByHost(call.Kind, call.SessionID); live {
		return s
	}
	for _, other := range p.shownLocked(l.screen.terminal, "") {
		if other.SessionID == "" {
			p.bindLocked(other, call.SessionID)
			return other
		}
	}
	args := *l.Identity
	args.Previous, args.Cwd = "", call.Cwd
	return p.byHostOrNewLocked(l, args, call.SessionID)
}

// takeOverLocked makes s the conversation that its terminal shows, under the name of the
// terminal's earlier session. renamed is set if s got that name.
func (p terminals) takeOverLocked(s *session.Session, clients agent.Terminals) (renamed bool) {
	var terminal proc.Named
	for _, l := range p.Conns {
		if !l.Sessions[s.ID] || l.Identity == nil {
			continue
		}
		if l.screen.terminal.Name == "" && l.Identity.Host() == session.HostServer {
			l.screen.terminal, _ = clients.TypedInto(p.opts.Now())
			p.watchLocked(l.screen.terminal)
		}
		if l.screen.terminal.Name != "" {
			terminal = l.screen.terminal
		}
	}
	if terminal.Name == "" {
		return false
	}
	for _, other := range p.shownLocked(terminal, s.ID) {
		name := other.Name
		p.leaveScreenLocked(other)
		if strings.HasPrefix(s.Name, name+"-") { // it has another name only because this one was taken
			p.Roster.Rename(s, name)
			p.notifyJoinedLocked(s)
			renamed = true
		}
	}
	return renamed
}

func (p terminals) notifyJoinedLocked(s *session.Session) {
	for _, l := range p.Conns {
		if l.Sessions[s.ID] {
			l.Conn.Push(api.EventJoined, Joined(s))
		}
	}
}

// watchLocked removes the conversations of a terminal from the roster when its codex has
// ended.
func (p terminals) watchLocked(terminal proc.Named) {
	if terminal.PID <= 1 || p.connectionsLocked(terminal) > 1 { // another goroutine watches it
		return
	}
	p.opts.Go(func(ctx context.Context) {
		if !servers(p).waitForEnd(ctx, terminal, func() bool { return p.connectionsLocked(terminal) > 0 }) {
			return
		}
		p.Lock()
		defer p.Unlock()
		for _, s := range p.shownLocked(terminal, "") {
			p.leaveScreenLocked(s)
		}
		for _, l := range p.Conns {
			if l.screen.terminal == terminal {
				l.screen.closed = true
			}
		}
		p.opts.Changed()
	})
}

// connectionsLocked counts the connections that belong to a terminal.
func (p terminals) connectionsLocked(terminal proc.Named) (count int) {
	for _, l := range p.Conns {
		if l.screen.terminal == terminal {
			count++
		}
	}
	return count
}
