package broker

import (
	"context"
	"path/filepath"
	"time"

	"bridge/backend/agent/clidata"
	"bridge/backend/broker/mailbox"
	"bridge/backend/proc"
	"bridge/backend/session"
)

// maxChildCalls bounds the tool calls remembered as a child's.
const maxChildCalls = 4_096

// noteChild records what a native child does: that it lives, and which tool
// calls are its own.
func (b *Broker) noteChild(s *session.Session, call session.HookCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if call.Event == session.EventPreTool && call.ToolUseID != "" {
		if len(b.childCalls) >= maxChildCalls {
			clear(b.childCalls)
		}
		b.childCalls[call.ToolUseID] = true
	}
	said := session.Child{ID: call.ChildID, Title: call.ChildTitle, Done: call.Event == session.EventChildStop, At: b.nowMillis()}
	changed, ok := b.roster.SetChild(s, said)
	if !ok {
		b.opts.Log.Warn("a hook claims a native child that is not its session's", "session", s.Name, "child", said.ID)
	}
	if changed {
		b.changedLocked()
	}
}

// LookAtChildren has the CLI's own store looked into for the native children of
// a session that somebody looks at. It does not wait for it: a change is
// signalled as any other. An unknown session is nobody's business.
func (b *Broker) LookAtChildren(peerID string) {
	b.mu.Lock()
	s, live := b.roster.Get(peerID)
	b.mu.Unlock()
	if live {
		b.lookIdle(s)
		b.lookSoon(s, "")
	}
}

// lookSoon schedules a look into the CLI's own store, because something
// happened in the session: children that began before any hook saw them, their
// titles and ends stand there. What happens until the look joins it; where
// nothing happens nothing is looked at. store is the folder of the CLI's store,
// "" where nobody said.
func (b *Broker) lookSoon(s *session.Session, store string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if filepath.IsAbs(store) {
		s.Store = store
	}
	box := b.boxes[s.ID]
	if s.Store == "" || s.SessionID == "" || box == nil || box.Looking {
		return
	}
	box.Looking = true
	b.soon(b.opts.Pace.Look, func(ctx context.Context) { b.look(ctx, s, box) })
}

// look takes in what the CLI's own store tells of the session's children.
func (b *Broker) look(ctx context.Context, s *session.Session, box *mailbox.Box) {
	b.mu.Lock()
	box.Looking = false // what happens from now on asks for another look
	host, folder, kind, cwd := s.SessionID, s.Store, s.Kind, s.Cwd
	pid := s.AgentPID
	b.mu.Unlock()
	found, err := clidata.Children(ctx, kind, folder, host, cwd)
	began := began(pid)
	note := ""
	if err != nil {
		note = err.Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.SessionID != host || b.boxes[s.ID] != box {
		return // it went on to another session meanwhile, or left
	}
	changed := s.ChildrenNote != note
	s.ChildrenNote = note
	for _, child := range found {
		child.Done = child.Done || child.At < began
		grown, _ := b.roster.SetChild(s, child) // the store of another session may hold it
		changed = changed || grown
	}
	if changed {
		b.changedLocked()
	}
}

// startSlack is how exactly a system tells when a process began.
const startSlack = 2 * time.Second

// began is when the agent's process began, Unix epoch milliseconds; 0 when the
// system does not tell. Children from before it ended with the process that
// they were in, whatever the store says of them.
func began(pid int) int64 {
	if pid <= 1 {
		return 0
	}
	at, err := proc.Started(pid)
	if err != nil {
		return 0
	}
	return at.Add(-startSlack).UnixMilli()
}
