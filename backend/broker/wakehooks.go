package broker

import (
	"context"
	"slices"
	"time"

	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// wakeHooks is the part of the broker that wakes idle claude sessions by hooks that wait
// in the background (bridge.HookWaker).
type wakeHooks struct{ *core }

// wakeWait serves a wake hook that waits in the background of an idle claude session. It
// returns with mail that may start a turn, or superseded when a newer hook waits.
func (p *wakeHooks) wakeWait(ctx context.Context, l *link, args api.WakeWait) (api.WakeReply, error) {
	args.Call.Ancestors = p.AgentOf(ctx, args.Call)
	s, err := p.hooks.callerOf(ctx, args.Call)
	if err != nil {
		return api.WakeReply{}, err
	}
	if s == nil || args.Call.ChildID != "" {
		return api.WakeReply{Superseded: true}, nil
	}
	superseded, leave := p.becomeWaiter(s, args.Standby)
	defer leave()
	for {
		arrived, ok := p.Arrivals(s)
		if !ok {
			return api.WakeReply{Superseded: true}, nil
		}
		reply, held, err := p.wakeNow(ctx, l, s, args.Standby)
		if bridge.CodeOf(err) == bridge.Unavailable {
			return api.WakeReply{Superseded: true}, nil // the session has left
		}
		if err != nil || reply.Text != "" {
			return reply, err
		}
		var doubt <-chan time.Time // never, unless mail waits for a turn to end
		if held {
			doubt = time.After(p.opts.Timing.Doubt)
		}
		select {
		case <-arrived:
		case <-doubt:
			p.idleness.Check(s)
		case <-superseded:
			return api.WakeReply{Superseded: true}, nil
		case <-ctx.Done():
			return api.WakeReply{Superseded: true}, nil
		}
	}
}

// becomeWaiter makes the caller the only waiting hook of its role.
func (p *wakeHooks) becomeWaiter(s *session.Session, standby bool) (superseded <-chan struct{}, leave func()) {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil {
		closed := make(chan struct{})
		close(closed)
		return closed, func() {}
	}
	waited := box.Hooks.Waits()
	place := box.Hooks.Wait(standby)
	if !waited {
		p.changed() // the session can be woken now
	}
	return place, func() {
		p.Lock()
		defer p.Unlock()
		if box.Hooks.Leave(standby, place) && !box.Hooks.Waits() {
			p.changed()
		}
	}
}

// wakeNow leases the mail that may wake the session, if it is idle. The first hook takes
// mail that was never tried, the standby takes mail whose first wake had no effect. held
// is set if there is such mail and the session is busy.
func (p *wakeHooks) wakeNow(ctx context.Context, l *link, s *session.Session, standby bool) (reply api.WakeReply, held bool, err error) {
	p.idleness.Check(s)
	filter, first := p.wakeMail(s, standby)
	woke := int64(0)
	lease, presentation, err := p.leases.lease(ctx, l, s, hookScan, first, func(free []mail.Delivery) mail.Presentation {
		box := p.Boxes[s.ID]
		free = p.Boxes.ForHooks(s, free)
		due := filter.And(p.Boxes.Due(s, p.nowMillis()))
		some := slices.ContainsFunc(free, due)
		if held = some && (s.Busy || box.Mod.State() == wake.ModEntering); held || !some {
			return mail.Presentation{}
		}
		ours := box.Hooks.For(standby)
		text := mail.Present(slices.DeleteFunc(box.Unannounced(free), func(d mail.Delivery) bool { return !ours(d) }), due)
		box.Hooks.Give(text, p.nowMillis())
		woke = p.wakes.wokeLocked(s, text.All(), filter)
		return text
	})
	if err != nil || lease == nil {
		return api.WakeReply{}, held, err
	}
	inText := mail.IDs(presentation.All())
	marks := make([]mail.Mark, 0, len(inText))
	for _, id := range inText {
		marks = append(marks, mail.Mark{MessageID: id, Recipient: lease.Recipient, At: p.nowMillis(), Via: mail.ViaWakeHook, Evidence: "its wake hook was given the text"})
	}
	p.ledger.Asked(ctx, marks)
	p.wakes.watchWake(s, inText, woke)
	return api.WakeReply{Text: presentation.Text, Lease: lease}, false, nil
}

// wakeMail returns the filter for mail that a wake hook of that role may wake s with. due
// is the mail among it that may do so now.
func (p *wakeHooks) wakeMail(s *session.Session, standby bool) (filter, due mail.Priority) {
	mayWake := p.leases.mayWake(s)
	p.Lock()
	defer p.Unlock()
	var known wake.Hooks
	if box := p.Boxes[s.ID]; box != nil {
		known = box.Hooks
	}
	ours := known.For(standby)
	filter = ours.And(mayWake)
	return filter, filter.And(p.Boxes.Due(s, p.nowMillis()))
}
