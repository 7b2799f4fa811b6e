package broker

import (
	"context"
	"path/filepath"
	"sync"

	"bridge/backend/agent/clidata"
	"bridge/backend/broker/mailbox"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// maxChildCalls bounds the tool calls remembered as a child's.
const maxChildCalls = 4_096

// children is the part that knows the native children of sessions.
type children struct {
	*core
	calls toolCalls // that a hook saw inside a native child: it must not take its parent's mail
}

// toolCalls are tool calls by their ids.
type toolCalls struct {
	mu  sync.Mutex // guards ids
	ids map[string]bool
}

func (c *toolCalls) add(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || len(c.ids) >= maxChildCalls {
		c.ids = map[string]bool{}
	}
	c.ids[id] = true
}

func (c *toolCalls) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[id]
}

// noteChild records what a native child does: that it lives, and which tool
// calls are its own.
func (p *children) noteChild(s *session.Session, call session.HookCall) {
	if call.Event == session.EventPreTool && call.ToolUseID != "" {
		p.calls.add(call.ToolUseID)
	}
	p.Lock()
	defer p.Unlock()
	said := session.Child{ID: call.ChildID, Title: call.ChildTitle, Done: call.Event == session.EventChildStop, At: p.nowMillis()}
	changed, ok := p.Roster.SetChild(s, said)
	if !ok {
		p.opts.Log.Warn("a hook claims a native child that is not its session's", "session", s.Name, "child", said.ID)
	}
	if changed {
		p.changed()
	}
}

// isChild reports whether a call came from inside a native child, by its own
// word or because a hook saw it there.
func (p *children) isChild(caller api.Caller) bool {
	return caller.ChildID != "" || p.calls.has(caller.ToolUseID)
}

// lookAt has the CLI's own store looked into for the native children of
// a session that somebody looks at. It does not wait for it: a change is
// signalled as any other. An unknown session is nobody's business.
func (p *children) lookAt(peerID string) {
	p.Lock()
	s, live := p.Roster.Get(peerID)
	p.Unlock()
	if live {
		p.idleness.lookIdle(s)
		p.lookSoon(s, "")
	}
}

// lookSoon schedules a look into the CLI's own store, because something
// happened in the session: children that began before any hook saw them, their
// titles and ends stand there. What happens until the look joins it; where
// nothing happens nothing is looked at. store is the folder of the CLI's store,
// "" where nobody said.
func (p *children) lookSoon(s *session.Session, store string) {
	p.Lock()
	defer p.Unlock()
	if filepath.IsAbs(store) {
		s.CLIDataDir = store
	}
	box := p.Boxes[s.ID]
	if s.CLIDataDir == "" || s.SessionID == "" || box == nil || box.Looking {
		return
	}
	box.Looking = true
	p.soon(p.opts.Pace.Look, func(ctx context.Context) { p.look(ctx, s, box) })
}

// look takes in what the CLI's own store tells of the session's children.
func (p *children) look(ctx context.Context, s *session.Session, box *mailbox.Box) {
	p.Lock()
	box.Looking = false // what happens from now on asks for another look
	host, folder, kind, cwd := s.SessionID, s.CLIDataDir, s.Kind, s.Cwd
	pid := s.AgentPID
	p.Unlock()
	found, err := clidata.Children(ctx, kind, folder, host, cwd)
	began := proc.Began(pid) // children from before it ended with their process, whatever the store says
	note := ""
	if err != nil {
		note = err.Error()
	}
	p.Lock()
	defer p.Unlock()
	if s.SessionID != host || p.Boxes[s.ID] != box {
		return // it went on to another session meanwhile, or left
	}
	changed := s.ChildrenNote != note
	s.ChildrenNote = note
	for _, child := range found {
		child.Done = child.Done || child.At < began
		grown, _ := p.Roster.SetChild(s, child) // the store of another session may hold it
		changed = changed || grown
	}
	if changed {
		p.changed()
	}
}
