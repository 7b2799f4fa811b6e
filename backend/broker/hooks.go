package broker

import (
	"context"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/proc"
	"bridge/backend/session"
)

// hookScan is how many unread messages a hook looks at: more than it may show,
// because long ones are only announced. What may wake is among them.
const hookScan = 50

// hook serves one hook or plugin call: it notes the activity, and hands over
// mail where the event allows it. A call of an unknown session gets nothing.
func (b *Broker) hook(ctx context.Context, l *link, call session.HookCall) (session.HookReply, error) {
	if err := call.Check(); err != nil {
		return session.HookReply{}, err
	}
	s, learned := b.sessionOfHook(call)
	if s == nil {
		return session.HookReply{Unknown: len(call.Ancestors) == 0}, nil
	}
	if learned {
		if err := b.settle(ctx, s); err != nil {
			return session.HookReply{}, err
		}
		b.changed()
	}
	b.lookSoon(s, call.Store)
	if call.ChildID != "" {
		b.noteChild(s, call)
		return session.HookReply{}, b.noteQueued(ctx, s, call)
	}
	if err := b.noteSign(ctx, s, call); err != nil {
		return session.HookReply{}, err
	}
	if err := b.noteQueued(ctx, s, call); err != nil {
		return session.HookReply{}, err
	}
	b.noteState(s, call)
	if call.Event == session.EventEnd {
		b.endThread(s)
	}
	if !call.TakesMail() {
		return session.HookReply{Busy: b.isBusy(s)}, nil
	}
	return b.handOver(ctx, l, s, call)
}

// noteSign finds out from a hook call what became of the mail that was handed over
// before it.
func (b *Broker) noteSign(ctx context.Context, s *session.Session, call session.HookCall) error {
	if err := b.offerAgain(ctx, s, b.startsUnknown(s, call)); err != nil {
		return err
	}
	if err := b.judgeWakes(ctx, s, call); err != nil {
		return err
	}
	if err := b.judgeMod(ctx, s, call); err != nil {
		return err
	}
	if !call.GoesOn() {
		b.noteActive(s)
		return nil
	}
	return b.consumeHanded(ctx, s, nextActivity(call.HostEvent))
}

// sessionOfHook finds the live session that a hook reports from: by its host
// session id, else by the agent process above the hook. A session found by its
// process learns its host session id here; learned also says that a known one
// began again in another folder.
func (b *Broker) sessionOfHook(call session.HookCall) (s *session.Session, learned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.roster.ByHost(call.Kind, call.SessionID); ok {
		return s, s.Relocate(call)
	}
	if call.SessionID == "" || call.ChildID != "" {
		return b.onlyOfProcessLocked(call), false
	}
	if s := b.onlyOfProcessLocked(call); s != nil && (s.SessionID == "" || call.Event == session.EventStart && !s.Threads) {
		// Unknown until now, or the host began another session in this process.
		b.bindLocked(s, call.SessionID)
		s.Relocate(call)
		return s, true
	}
	return b.promoteLocked(call)
}

// onlyOfProcessLocked returns the session of the agent process above a hook,
// nil when there is none or more than one.
func (b *Broker) onlyOfProcessLocked(call session.HookCall) *session.Session {
	found := b.roster.ByProcess(call.Kind, call.Ancestors)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// promoteLocked makes the provisional server below the hook's agent process the
// session that the hook speaks of: a second thread of one codex process.
func (b *Broker) promoteLocked(call session.HookCall) (*session.Session, bool) {
	only := b.freeServerLocked(call)
	if only == nil {
		return nil, false
	}
	args := *only.identity
	args.Previous = ""
	s := b.byHostOrNewLocked(only, args, call.SessionID)
	b.attachLocked(only, s)
	return s, true
}

// noteState keeps whether the session is at work.
func (b *Broker) noteState(s *session.Session, call session.HookCall) {
	b.mu.Lock()
	busy := call.Event.BusyAfter(s.Busy)
	first := !s.HooksSeen
	changed := busy != s.Busy || first
	s.Busy, s.HooksSeen = busy, true
	if box := b.boxes[s.ID]; box != nil {
		box.Mod.Sign(call, b.nowMillis())
	}
	for _, l := range b.conns {
		if first && l.sessions[s.ID] {
			l.conn.Push(api.EventJoined, joined(s)) // so that the next broker knows
		}
	}
	b.mu.Unlock()
	if changed {
		b.changed()
	}
}

func (b *Broker) isBusy(s *session.Session) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.Busy
}

// handOver lends unread mail to a hook as one text. At the end of a turn it
// does so only when some of it may keep the turn going (DEC-11, MSG-07); then
// the rest comes along, for the turn goes on anyway.
func (b *Broker) handOver(ctx context.Context, l *link, s *session.Session, call session.HookCall) (session.HookReply, error) {
	mayWake := b.mayWake(s)
	loan, given, err := b.lend(ctx, l, s, hookScan, mayWake, func(free []mail.Delivery) mail.Presentation {
		fresh := b.boxes[s.ID].Unannounced(b.forHooksLocked(s, free))
		if call.Event.EndsTurn() && !slices.ContainsFunc(fresh, mayWake) {
			return mail.Presentation{}
		}
		return mail.Present(fresh, mayWake)
	})
	if err != nil {
		return session.HookReply{}, err
	}
	if call.Event.EndsTurn() && given.Text != "" {
		b.mu.Lock()
		s.Busy = true // the text starts or continues a turn
		b.mu.Unlock()
		b.changed()
	}
	return session.HookReply{Text: given.Text, Loan: loan, Busy: b.isBusy(s)}, nil
}

// mayWake tells which mail may start a turn of s or keep one going, as s is at
// this moment. What s was told of already does no more.
func (b *Broker) mayWake(s *session.Session) mail.Priority {
	b.mu.Lock()
	defer b.mu.Unlock()
	target := session.Session{ID: s.ID, Name: s.Name, SessionID: s.SessionID}
	policy := s.Wake
	told := map[string]bool{}
	if box := b.boxes[s.ID]; box != nil {
		told = box.Announced()
	}
	return func(d mail.Delivery) bool {
		return !told[d.ID] && mail.MayWake(d.Message, mail.Direct(d.Message, &target), policy)
	}
}

// agentAbove returns the live session below whose agent process pid runs, nil
// when there is none.
func (b *Broker) agentAbove(pid int) *session.Session {
	if pid <= 0 {
		return nil
	}
	var above []int
	for _, p := range proc.Ancestors(pid, maxAncestors) {
		above = append(above, p.PID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, kind := range bridge.Kinds() {
		for _, l := range b.conns {
			if l.identity == nil || l.identity.Kind != kind || !l.identity.HostKnown || !slices.Contains(above, l.identity.AgentPID) {
				continue
			}
			for id := range l.sessions {
				if s, ok := b.roster.Get(id); ok {
					return s
				}
			}
		}
	}
	return nil
}

// maxAncestors bounds the walk from a process to the agent above it.
const maxAncestors = 12

var _ ipc.Handler = (*Broker)(nil)
