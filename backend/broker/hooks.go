package broker

import (
	"context"
	"slices"

	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// hookScan is how many unread messages a hook reads. It exceeds what a hook may show,
// because long ones are only announced. Mail that may wake the session is among them.
const hookScan = 50

// hooks is the part of the broker that serves the calls of hooks and plugins.
type hooks struct{ *core }

// hook serves one hook or plugin call. It records the activity, and hands over mail if
// the event allows it. A call of an unknown session gets an empty reply.
func (p *hooks) hook(ctx context.Context, l *link, call session.HookCall) (session.HookReply, error) {
	call.Ancestors = p.AgentOf(ctx, call)
	s, err := p.callerOf(ctx, call)
	if err != nil || s == nil {
		return session.HookReply{}, err
	}
	p.children.scheduleCheck(s, call.CLIDataDir)
	p.Exchanges.Heard(s, call)
	if p.prompts != nil {
		p.prompts.HandleHook(call)
	}
	if call.IsOfPromptsOnly() {
		return session.HookReply{}, nil
	}
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
	wakes := p.wakesByStop(s, call)
	p.noteState(s, call)
	if call.Event == session.EventEnd {
		p.EndThread(s)
	}
	if call.Event.EndsTurn() && p.TurnEnded(s) {
		return session.HookReply{}, nil
	}
	if !call.AcceptsMail() {
		return session.HookReply{Busy: p.IsBusy(s)}, nil
	}
	return p.handOver(ctx, l, s, call, wakes)
}

// wakesByStop reports whether text for this call would wake an idle session: opencode's
// plugin repeats the end of the turn when it is notified of mail.
func (p *hooks) wakesByStop(s *session.Session, call session.HookCall) bool {
	return call.Event.EndsTurn() && delivery.WakerOf(s.Kind) == bridge.PluginWaker && !p.IsBusy(s)
}

// callerOf finds the live session of a hook's call, nil if there is none. It persists
// what the call revealed of the session's identity.
func (p *hooks) callerOf(ctx context.Context, call session.HookCall) (*session.Session, error) {
	if err := call.Check(); err != nil {
		return nil, err
	}
	s, learned := p.SessionOfHook(call)
	if s == nil || !learned {
		return s, nil
	}
	err := p.sessions.persistIdentity(ctx, s)
	p.changed()
	return s, err
}

// noteSign determines from a hook call the outcome of the mail that was handed over
// before the call.
func (p *hooks) noteSign(ctx context.Context, s *session.Session, call session.HookCall) error {
	if err := p.activity.offerAgain(ctx, s, p.StartsUnknown(s, call)); err != nil {
		return err
	}
	overtaken, err := p.wakes.judgeWakes(ctx, s, call)
	if err != nil {
		return err
	}
	if err := p.mods.judgeMod(ctx, s, call); err != nil {
		return err
	}
	if !call.GoesOn() {
		p.activity.markActive(s)
		return nil
	}
	err = p.activity.consumeHandedOver(ctx, s, nextActivity(call.HostEvent))
	if len(overtaken) > 0 {
		p.wakes.watchWake(s, overtaken, 0)
	}
	return err
}

// noteState records whether the session is at work.
func (p *hooks) noteState(s *session.Session, call session.HookCall) {
	next := call.Event == session.EventStop && p.idleness.HasNextTurn(s)
	p.Lock()
	busy := call.Event.BusyAfter(s.Busy) || next
	first := !s.HooksSeen
	changed := busy != s.Busy || s.UnknownSince > 0 || first
	s.HooksSeen, s.Ended = true, call.Event == session.EventEnd
	p.idleness.SetBusyLocked(s, busy)
	if box := p.Boxes[s.ID]; box != nil {
		box.Mod.Sign(call, p.nowMillis())
	}
	for _, l := range p.Conns {
		if first && l.Sessions[s.ID] {
			l.Conn.Push(api.EventJoined, presence.Joined(s)) // so that the next broker knows
		}
	}
	p.Unlock()
	if changed {
		p.changed()
	}
}

// handOver leases unread mail to a hook as one text. At the end of a turn it does so only
// if some of the mail may keep the turn going (DEC-11, MSG-07). Then it adds the rest,
// because the turn continues anyway. wakes is set if the session is idle, and a text would
// wake it.
func (p *hooks) handOver(ctx context.Context, l *link, s *session.Session, call session.HookCall, wakes bool) (session.HookReply, error) {
	mayWake := p.leases.mayWake(s)
	first := mayWake
	if wakes {
		first = p.leases.mayWakeNow(s)
	}
	lease, presentation, err := p.leases.lease(ctx, l, s, hookScan, first, func(free []mail.Delivery) mail.Presentation {
		newMail := p.Boxes[s.ID].Unannounced(p.Boxes.ForHooks(s, free))
		starts := mayWake
		if wakes {
			starts = mayWake.And(p.Boxes.Due(s, p.nowMillis()))
		}
		if call.Event.EndsTurn() && !slices.ContainsFunc(newMail, starts) {
			return mail.Presentation{}
		}
		text := mail.Present(newMail, starts)
		if wakes {
			p.wakes.wokeLocked(s, text.All(), mayWake)
		}
		return text
	})
	if err != nil {
		return session.HookReply{}, err
	}
	if call.Event.EndsTurn() && presentation.Text != "" {
		p.Lock()
		p.idleness.SetBusyLocked(s, true) // the text starts or continues a turn
		p.Unlock()
		p.changed()
	}
	return session.HookReply{Text: presentation.Text, Lease: lease, Busy: p.IsBusy(s)}, nil
}
