package broker

import (
	"context"
	"path/filepath"
	"sync"

	"bridge/backend/agent/kinds"
	"bridge/backend/broker/mailbox"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// maxChildCalls limits the remembered tool calls of native children.
const maxChildCalls = 4_096

// children is the part of the broker that tracks the native children of sessions.
type children struct {
	*core
	calls toolCalls // seen by a hook inside a native child: they must not take the parent's mail
}

// toolCalls is a set of tool call ids.
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

// noteChild records what a native child does: that the child lives, and which tool calls
// belong to it.
func (p *children) noteChild(s *session.Session, call session.HookCall) {
	if call.Event == session.EventPreTool && call.ToolUseID != "" {
		p.calls.add(call.ToolUseID)
	}
	p.Lock()
	defer p.Unlock()
	child := session.Child{ID: call.ChildID, Title: call.ChildTitle, Done: call.Event == session.EventChildStop, At: p.nowMillis()}
	changed, ok := p.Roster.SetChild(s, child)
	if !ok {
		p.opts.Log.Warn("a hook claims a native child that is not its session's", "session", s.Name, "child", child.ID)
	}
	if changed {
		p.changed()
	}
}

// isChild reports whether a call came from inside a native child. Either the call states
// it, or a hook saw the call there.
func (p *children) isChild(caller api.Caller) bool {
	return caller.ChildID != "" || p.calls.has(caller.ToolUseID)
}

// check checks the CLI's own store for the native children of a session that a person
// views. It does not wait for the result: a change is signalled as usual. It ignores an
// unknown session.
func (p *children) check(peerID string) {
	p.Lock()
	s, live := p.Roster.Get(peerID)
	p.Unlock()
	if live {
		p.idleness.Check(s)
		p.scheduleCheck(s, "")
	}
}

// scheduleCheck schedules one check of the CLI's own store after an event in the session. The
// store lists children that began before any hook saw them, their titles and ends. Events
// until the check share it. Without events there is no check. store is the folder of the
// CLI's store, "" if unknown.
func (p *children) scheduleCheck(s *session.Session, store string) {
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
	p.soon(p.opts.Timing.PollInterval, func(ctx context.Context) { p.look(ctx, s, box) })
}

// look reads the session's children from the CLI's own store and updates the roster.
func (p *children) look(ctx context.Context, s *session.Session, box *mailbox.Box) {
	p.Lock()
	box.Looking = false // later events schedule another check
	host, folder, kind, cwd := s.SessionID, s.CLIDataDir, s.Kind, s.Cwd
	pid := s.AgentPID
	p.Unlock()
	found, err := kinds.StoreOf(kind).Children(ctx, folder, host, cwd)
	began := proc.Began(pid) // older children ended with their process, whatever the store says
	note := ""
	if err != nil {
		note = err.Error()
	}
	p.Lock()
	defer p.Unlock()
	if s.SessionID != host || p.Boxes[s.ID] != box {
		return // meanwhile the session changed to another host session or left
	}
	changed := s.ChildrenNote != note
	s.ChildrenNote = note
	for _, child := range found {
		child.Done = child.Done || child.At < began
		grown, _ := p.Roster.SetChild(s, child) // the store of another session may hold the child
		changed = changed || grown
	}
	if changed {
		p.changed()
	}
}
