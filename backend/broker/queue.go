package broker

import (
	"context"
	"slices"

	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// queues is the part of the broker that wakes idle codex sessions by codex's own queue
// (bridge.QueueWaker).
type queues struct{ *core }

// noteQueueLocked records the queue's last result for the diagnostics (CHT-19).
func (p *queues) noteQueueLocked(peerID string, result chat.QueueResult, reason string) {
	if box := p.Boxes[peerID]; box != nil {
		box.Queue.Note(result, reason)
	}
}

// queueWakeLocked schedules one wake of an idle codex session. Mail that arrives until
// the wake runs shares it. While a wake is outstanding, it schedules none.
func (p *queues) queueWakeLocked(s *session.Session) {
	if p.Boxes[s.ID].Queue.Schedule(p.nowMillis()) {
		p.soon(p.opts.Timing.Debounce, func(ctx context.Context) { p.queueWake(ctx, s) })
	}
}

// queueWake requests a turn from codex's queue if the session is still idle and still has
// mail that may wake it. The mail itself comes with the prompt hook.
func (p *queues) queueWake(ctx context.Context, s *session.Session) {
	waking, thread := p.wakeable(ctx, s)
	var result chat.QueueResult
	var reason string
	if len(waking) > 0 {
		queue, err := p.opts.Queue()
		if err != nil {
			result, reason = chat.QueueRefused, err.Error()
		} else {
			result, reason = queue.Push(ctx, thread, mail.WakePrompt)
		}
	}
	p.Lock()
	if box := p.Boxes[s.ID]; box != nil {
		box.Queue.Pushed(result, p.nowMillis())
		if result != "" {
			box.Queue.Note(result, reason)
		}
		if result == chat.QueueAccepted || result == chat.QueueUnclear {
			p.wakes.wokeLocked(s, waking, func(mail.Delivery) bool { return true })
		}
	}
	p.Unlock()
	if result == chat.QueueAccepted {
		p.ledger.Asked(ctx, p.marksOf(s, waking))
		p.costs.Add(p.TargetOf(s).ID, session.Cost{Mail: int64(len(mail.WakePrompt))})
	}
	if result != "" {
		p.changed()
	}
}

// marksOf returns the marks of a wake for this mail.
func (p *queues) marksOf(s *session.Session, waking []mail.Delivery) (marks []mail.Mark) {
	id := p.TargetOf(s).ID
	for _, d := range waking {
		marks = append(marks, mail.Mark{MessageID: d.ID, Recipient: id, At: p.nowMillis(), Via: mail.ViaQueue, Evidence: "codex's queue accepted a wake"})
	}
	return marks
}

// wakeable returns the unread mail that may wake an idle session now, and the thread to
// wake.
func (p *queues) wakeable(ctx context.Context, s *session.Session) (waking []mail.Delivery, thread string) {
	mayWake := p.leases.mayWakeNow(s)
	unread, err := p.Exchanges.Waiting(ctx, p.TargetOf(s).ID, hookScan, mayWake)
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if err != nil || box == nil || s.Busy {
		return nil, ""
	}
	waking = slices.DeleteFunc(box.Free(unread), func(d mail.Delivery) bool { return !mayWake(d) })
	return waking, s.SessionID
}
