package broker

import (
	"context"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/proc"
	"bridge/backend/session"
)

// hookScan is how many unread messages a hook looks at: more than it may show,
// because long ones are only announced. What may wake is among them.
const hookScan = 50

// hooks is the part that takes in what hooks and plugins tell.
type hooks struct{ *core }

// hook serves one hook or plugin call: it notes the activity, and hands over
// mail where the event allows it. A call of an unknown session gets nothing.
func (p *hooks) hook(ctx context.Context, l *link, call session.HookCall) (session.HookReply, error) {
	s, err := p.callerOf(ctx, call)
	if err != nil {
		return session.HookReply{}, err
	}
	if s == nil {
		return session.HookReply{Unknown: len(call.Ancestors) == 0}, nil
	}
	p.children.lookSoon(s, call.CLIDataDir)
	if call.ChildID != "" {
		p.children.noteChild(s, call)
		return session.HookReply{}, p.chats.noteQueued(ctx, s, call)
	}
	if err := p.noteSign(ctx, s, call); err != nil {
		return session.HookReply{}, err
	}
	if err := p.chats.noteQueued(ctx, s, call); err != nil {
		return session.HookReply{}, err
	}
	p.noteState(s, call)
	if call.Event == session.EventEnd {
		p.threads.endThread(s)
	}
	if !call.TakesMail() {
		return session.HookReply{Busy: p.isBusy(s)}, nil
	}
	return p.handOver(ctx, l, s, call)
}

// callerOf finds the live session that a hook reports from, nil when none is known,
// and makes durable what the call told of it.
func (p *hooks) callerOf(ctx context.Context, call session.HookCall) (*session.Session, error) {
	if err := call.Check(); err != nil {
		return nil, err
	}
	s, learned := p.sessionOfHook(call)
	if s == nil || !learned {
		return s, nil
	}
	err := p.sessions.persistIdentity(ctx, s)
	p.changed()
	return s, err
}

// noteSign finds out from a hook call what became of the mail that was handed over
// before it.
func (p *hooks) noteSign(ctx context.Context, s *session.Session, call session.HookCall) error {
	if err := p.activity.offerAgain(ctx, s, p.activity.startsUnknown(s, call)); err != nil {
		return err
	}
	if err := p.wakes.judgeWakes(ctx, s, call); err != nil {
		return err
	}
	if err := p.mods.judgeMod(ctx, s, call); err != nil {
		return err
	}
	if !call.GoesOn() {
		p.activity.markActive(s)
		return nil
	}
	return p.activity.consumeHanded(ctx, s, nextActivity(call.HostEvent))
}

// sessionOfHook finds the live session that a hook reports from: by its host
// session id, else by the agent process above the hook. A session found by its
// process learns its host session id here; learned also says that a known one
// began again in another folder.
func (p *hooks) sessionOfHook(call session.HookCall) (s *session.Session, learned bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.roster.ByHost(call.Kind, call.SessionID); ok {
		return s, s.Relocate(call)
	}
	if call.SessionID == "" || call.ChildID != "" {
		return p.onlyOfProcessLocked(call), false
	}
	if s := p.onlyOfProcessLocked(call); s != nil && (s.SessionID == "" || call.Event == session.EventStart && s.Host != session.HostServer) {
		// Unknown until now, or the host began another session in this process.
		p.identity.bindLocked(s, call.SessionID)
		s.Relocate(call)
		return s, true
	}
	return p.threads.promoteLocked(call)
}

// onlyOfProcessLocked returns the session of the agent process above a hook,
// nil when there is none or more than one.
func (p *hooks) onlyOfProcessLocked(call session.HookCall) *session.Session {
	found := p.roster.ByProcess(call.Kind, call.Ancestors)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// noteState keeps whether the session is at work.
func (p *hooks) noteState(s *session.Session, call session.HookCall) {
	p.mu.Lock()
	busy := call.Event.BusyAfter(s.Busy)
	first := !s.HooksSeen
	changed := busy != s.Busy || first
	s.Busy, s.HooksSeen = busy, true
	if box := p.boxes[s.ID]; box != nil {
		box.Mod.Sign(call, p.nowMillis())
	}
	for _, l := range p.conns {
		if first && l.sessions[s.ID] {
			l.conn.Push(api.EventJoined, joined(s)) // so that the next broker knows
		}
	}
	p.mu.Unlock()
	if changed {
		p.changed()
	}
}

// handOver leases unread mail to a hook as one text. At the end of a turn it
// does so only when some of it may keep the turn going (DEC-11, MSG-07); then
// the rest comes along, for the turn goes on anyway.
func (p *hooks) handOver(ctx context.Context, l *link, s *session.Session, call session.HookCall) (session.HookReply, error) {
	mayWake := p.leases.mayWake(s)
	lease, given, err := p.leases.lease(ctx, l, s, hookScan, mayWake, func(free []mail.Delivery) mail.Presentation {
		fresh := p.boxes[s.ID].Unannounced(p.forHooksLocked(s, free))
		if call.Event.EndsTurn() && !slices.ContainsFunc(fresh, mayWake) {
			return mail.Presentation{}
		}
		return mail.Present(fresh, mayWake)
	})
	if err != nil {
		return session.HookReply{}, err
	}
	if call.Event.EndsTurn() && given.Text != "" {
		p.mu.Lock()
		s.Busy = true // the text starts or continues a turn
		p.mu.Unlock()
		p.changed()
	}
	return session.HookReply{Text: given.Text, Lease: lease, Busy: p.isBusy(s)}, nil
}

// agentAbove returns the live session below whose agent process pid runs, nil
// when there is none.
func (p *messages) agentAbove(pid int) *session.Session {
	if pid <= 0 {
		return nil
	}
	var above []int
	for _, p := range proc.Ancestors(pid, maxAncestors) {
		above = append(above, p.PID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kind := range bridge.Kinds() {
		for _, l := range p.conns {
			if l.identity == nil || l.identity.Kind != kind || !l.identity.HostKnown || !slices.Contains(above, l.identity.AgentPID) {
				continue
			}
			for id := range l.sessions {
				if s, ok := p.roster.Get(id); ok {
					return s
				}
			}
		}
	}
	return nil
}
