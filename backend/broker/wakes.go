package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// wakes is the part of the broker that determines the outcome of wakes.
type wakes struct{ *core }

// judgeWakes determines the outcome of the mail that wake hooks or the channel gave to
// the host. The evidence is the session's next sign: a hook call, or a tool call without
// an event (mail.Signs). Dropped mail is unread again and comes with this very call. It
// returns the mail given during the turn that ends here, which the caller must watch
// again.
func (p *wakes) judgeWakes(ctx context.Context, s *session.Session, call session.HookCall) (overtaken []string, err error) {
	now := p.nowMillis()
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil || delivery.WakerOf(s.Kind) != bridge.HookWaker {
		p.Unlock()
		return nil, nil
	}
	handovers, announced, open := box.Handovers(), box.Hooks.Announced(), box.Hooks.Open()
	signs := box.Hooks.Sign(call, box.LastActive(), p.opts.Timing.Settle.Milliseconds(), now)
	p.Unlock()
	if !open {
		return nil, nil
	}
	times, err := p.ledger.HandedByHooks(ctx, id)
	if err != nil {
		return nil, err
	}
	maps.Copy(times, announced)
	messages, dropped := signs.Judge(call, times, now)
	var marks []mail.Mark
	for _, message := range messages {
		if announced[message] == 0 { // an announcement does not count as reading
			marks = append(marks, mail.Mark{MessageID: message, Recipient: id, At: now, Via: mail.ViaActivity, Evidence: nextActivity(call.HostEvent)})
		}
	}
	if err := p.opts.DB.Record(ctx, bridge.StageConsumed, marks); err != nil {
		return nil, err
	}
	if err := p.unseen(ctx, s, id, box, dropped); err != nil {
		return nil, err
	}
	p.Lock()
	for _, message := range messages {
		box.Hooks.Shown(message)
	}
	box.Hooks.Judged(len(times) > 0 || box.Handovers() != handovers)
	p.Unlock()
	if len(marks) > 0 {
		p.changed()
	}
	return signs.Overtaken(call, times), nil
}

// unseen makes mail unread again that no session saw, and forgets its announcement. If a
// channel did not show the mail, unseen turns the channel off: claude may accept a
// channel and silently drop its messages if its vendor does not permit it.
func (p *wakes) unseen(ctx context.Context, s *session.Session, peerID string, box *mailbox.Box, messages []string) error {
	takeBack := p.costs.Dropped(ctx, peerID, messages)
	if err := p.ledger.Unseen(ctx, peerID, messages...); err != nil {
		return err
	}
	takeBack()
	p.Lock()
	defer p.Unlock()
	for _, message := range messages {
		box.Unannounce(message)
		if box.Hooks.Dropped(message) == wake.HookPushed {
			s.Channel = false
		}
	}
	return nil
}

// wokeLocked records a wake of an idle session for the limits of its policy, and schedules
// the next one for mail that arrives until then (QUI-03). It returns the time of the wake.
// It returns 0 if the limits do not count the wake, because the owner or a job caused it.
func (p *wakes) wokeLocked(s *session.Session, deliveries []mail.Delivery, mayWake mail.Priority) (at int64) {
	if slices.ContainsFunc(deliveries, func(d mail.Delivery) bool { return mayWake(d) && !wake.IsOfAgent(d.Message) }) {
		return 0
	}
	box, now := p.Boxes[s.ID], p.nowMillis()
	box.Rate.Woken(s.Wake, now)
	if next := box.Rate.Next(s.Wake, now); next > now {
		p.soon(time.Duration(next-now)*time.Millisecond, func(ctx context.Context) { p.wakeAgain(ctx, s) })
	}
	return now
}

// wakeAgain announces the mail that arrived for a session after its last wake, if the
// session is still idle.
func (p *wakes) wakeAgain(ctx context.Context, s *session.Session) {
	mayWake := p.leases.mayWake(s)
	waiting, err := p.Exchanges.Waiting(ctx, p.TargetOf(s).ID, hookScan, mayWake)
	if err != nil {
		p.opts.Log.Warn("waiting mail wakes nobody until more arrives", "session", s.Name, "err", err)
		return
	}
	p.Lock()
	box := p.Boxes[s.ID]
	if box != nil {
		waiting = slices.DeleteFunc(box.Free(waiting), func(d mail.Delivery) bool { return !mayWake(d) })
	}
	p.Unlock()
	if box != nil && len(waiting) > 0 {
		p.messages.arrived(ctx, []bridge.Message{waiting[0].Message})
	}
}

// watchWake watches a wake of the time at, 0 if the limits of wakes do not count it. If
// the session shows no activity in time, its mail is unread again, for the standby and the
// next turn. While a hook still holds the mail, the timeout has not begun.
func (p *wakes) watchWake(s *session.Session, ids []string, at int64) {
	startedAt := p.nowMillis()
	p.tasks.Go(func() {
		timer := time.NewTimer(p.opts.Timing.Confirm)
		defer timer.Stop()
		var id string
		var box *mailbox.Box
		for held := true; held; timer.Reset(p.opts.Timing.Confirm) {
			select {
			case <-timer.C:
			case <-p.tasks.Done():
				return
			}
			p.Lock()
			id, box = s.ID, p.Boxes[s.ID]
			asleep := box != nil && box.LastActive() <= startedAt
			held = asleep && slices.ContainsFunc(ids, func(message string) bool { return box.IsLeased(message) })
			p.Unlock()
			if !asleep {
				return
			}
		}
		if err := p.unseen(p.tasks.Context(), s, id, box, ids); err != nil {
			p.opts.Log.Warn("mail of a wake without effect could not be offered again", "err", err)
		}
		p.Lock()
		box.Rate.Failed(at)
		if p.Boxes[id] == box {
			box.Signal()
		}
		p.Unlock()
		p.changed()
	})
}
