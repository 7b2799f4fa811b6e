package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/chat"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// wakeLocked is the way by which m starts a turn of s now, "" where it starts none.
func (b *Broker) wakeLocked(s *session.Session, m bridge.Message) mail.Via {
	return mail.WakeNow(m, s, b.factsLocked(s))
}

// noteWoken stores that wakes were asked for.
func (b *Broker) noteWoken(ctx context.Context, marks []mail.Mark) {
	if len(marks) == 0 {
		return
	}
	if err := b.opts.DB.Record(ctx, bridge.StageWoken, marks); err != nil {
		b.opts.Log.Warn("a wake was asked for but not noted", "err", err)
	}
}

// noteQueueLocked keeps what the queue made of what it was given last, for the
// diagnostics (CHT-19).
func (b *Broker) noteQueueLocked(peerID string, result chat.QueueResult, reason string) {
	if box := b.boxes[peerID]; box != nil {
		box.Queue.Note(result, reason)
	}
}

// queueWakeLocked schedules one wake of an idle codex session. Mail that comes
// until it runs joins it; while one is outstanding nothing is asked.
func (b *Broker) queueWakeLocked(s *session.Session) {
	if b.boxes[s.ID].Queue.Schedule(b.nowMillis()) {
		b.soon(b.opts.Pace.Debounce, func(ctx context.Context) { b.queueWake(ctx, s) })
	}
}

// queueWake asks codex's queue for a turn, if the session is still idle and
// still has mail that may wake it. The mail itself comes with the prompt hook.
func (b *Broker) queueWake(ctx context.Context, s *session.Session) {
	marks, thread := b.wakeable(ctx, s)
	var result chat.QueueResult
	var reason string
	if len(marks) > 0 {
		queue, err := b.opts.Queue()
		if err != nil {
			result, reason = chat.QueueRefused, err.Error()
		} else {
			result, reason = queue.Push(ctx, thread, wakePrompt)
		}
	}
	b.mu.Lock()
	if box := b.boxes[s.ID]; box != nil {
		box.Queue.Pushed(result, b.nowMillis())
		if result != "" {
			box.Queue.Note(result, reason)
		}
	}
	b.mu.Unlock()
	if result == chat.QueueAccepted {
		b.noteWoken(ctx, marks)
	}
	if result != "" {
		b.changed()
	}
}

// wakePrompt is all that a wake by queue says: the hooks show the mail with it.
const wakePrompt = "Mail from Bridge has arrived for you. If it is not shown with this prompt, read it with the tool `inbox`. Act on it as your user would want, or say that there is nothing to do."

// wakeable lists the unread mail that may wake an idle session, as marks of the
// wake, and the thread to ask.
func (b *Broker) wakeable(ctx context.Context, s *session.Session) (marks []mail.Mark, thread string) {
	mayWake := b.mayWake(s)
	unread, err := b.opts.DB.Waiting(ctx, b.targetOf(s).ID, hookScan, mayWake)
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[s.ID]
	if err != nil || box == nil || s.Busy {
		return nil, ""
	}
	for _, d := range unread {
		if d.Handed.Happened() || box.IsLeased(d.ID) || !mayWake(d) {
			continue
		}
		marks = append(marks, mail.Mark{MessageID: d.ID, Recipient: s.ID, At: b.nowMillis(), Via: mail.ViaQueue, Evidence: "codex's queue accepted a wake"})
	}
	return marks, s.SessionID
}

// wakeWait serves a wake hook that waits in the background of an idle claude
// session: it ends with mail that may start a turn, or when a newer hook waits.
func (b *Broker) wakeWait(ctx context.Context, l *link, args api.WakeWait) (api.WakeReply, error) {
	if err := args.Call.Check(); err != nil {
		return api.WakeReply{}, err
	}
	s, learned := b.sessionOfHook(args.Call)
	if s == nil || args.Call.ChildID != "" {
		return api.WakeReply{Superseded: true}, nil
	}
	if learned {
		if err := b.settle(ctx, s); err != nil {
			return api.WakeReply{}, err
		}
		b.changed()
	}
	superseded, leave := b.takeWaitingPlace(s, args.Standby)
	defer leave()
	for {
		arrived, ok := b.arrivals(s)
		if !ok {
			return api.WakeReply{Superseded: true}, nil
		}
		reply, held, err := b.wakeNow(ctx, l, s, args.Standby)
		if bridge.CodeOf(err) == bridge.Unavailable {
			return api.WakeReply{Superseded: true}, nil // the session has left
		}
		if err != nil || reply.Text != "" {
			return reply, err
		}
		var doubt <-chan time.Time // never, unless mail waits for a turn to end
		if held {
			doubt = time.After(b.opts.Pace.Doubt)
		}
		select {
		case <-arrived:
		case <-doubt:
			b.lookIdle(s)
		case <-superseded:
			return api.WakeReply{Superseded: true}, nil
		case <-ctx.Done():
			return api.WakeReply{Superseded: true}, nil
		}
	}
}

// takeWaitingPlace makes the caller the one waiting hook of its role.
func (b *Broker) takeWaitingPlace(s *session.Session, standby bool) (superseded <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[s.ID]
	if box == nil {
		gone := make(chan struct{})
		close(gone)
		return gone, func() {}
	}
	waited := box.Hooks.Waits()
	place := box.Hooks.Wait(standby)
	if !waited {
		b.changedLocked() // it can be woken now
	}
	return place, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if box.Hooks.Leave(standby, place) && !box.Hooks.Waits() {
			b.changedLocked()
		}
	}
}

// wakeNow lends the mail that may wake the session, if it is idle. The first
// hook takes what was never tried; the standby what a first wake did not bring
// to life. held says that there is such mail and the session is busy.
func (b *Broker) wakeNow(ctx context.Context, l *link, s *session.Session, standby bool) (reply api.WakeReply, held bool, err error) {
	mine := b.wakeMail(s, standby)
	loan, given, err := b.lend(ctx, l, s, hookScan, mine, func(free []mail.Delivery) mail.Presentation {
		box := b.boxes[s.ID]
		free = b.forHooksLocked(s, free)
		some := slices.ContainsFunc(free, mine)
		if held = some && (s.Busy || box.Mod.State() == wake.ModEntering); held || !some {
			return mail.Presentation{}
		}
		ours := box.Hooks.For(standby)
		text := mail.Present(slices.DeleteFunc(box.Unannounced(free), func(d mail.Delivery) bool { return !ours(d) }), mine)
		box.Hooks.Give(text, b.nowMillis())
		return text
	})
	if err != nil || loan == nil {
		return api.WakeReply{}, held, err
	}
	inText := mail.IDs(slices.Concat(given.Shown, given.Announced))
	marks := make([]mail.Mark, 0, len(inText))
	for _, id := range inText {
		marks = append(marks, mail.Mark{MessageID: id, Recipient: loan.Recipient, At: b.nowMillis(), Via: mail.ViaWakeHook, Evidence: "its wake hook was given the text"})
	}
	b.noteWoken(ctx, marks)
	b.watchWake(s, inText)
	return api.WakeReply{Text: given.Text, Loan: loan}, false, nil
}

// wakeMail tells which mail a wake hook of that role may wake s with.
func (b *Broker) wakeMail(s *session.Session, standby bool) mail.Priority {
	mayWake := b.mayWake(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	var known wake.Hooks
	if box := b.boxes[s.ID]; box != nil {
		known = box.Hooks
	}
	ours := known.For(standby)
	return func(d mail.Delivery) bool { return ours(d) && mayWake(d) }
}

// judgeWakes finds out what became of the mail that wake hooks or the channel
// gave to the host, from the session's next sign: a hook call, or a tool call
// without an event (mail.Signs). What was dropped is unread again and comes with
// this very call.
func (b *Broker) judgeWakes(ctx context.Context, s *session.Session, call session.HookCall) error {
	now := b.nowMillis()
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	if box == nil || s.Kind != bridge.Claude {
		b.mu.Unlock()
		return nil
	}
	handovers, told, open := box.Handovers(), box.Hooks.Announced(), box.Hooks.Open()
	signs := box.Hooks.Sign(call.Event, box.LastActive(), b.opts.Pace.Settle.Milliseconds(), now)
	b.mu.Unlock()
	if !open {
		return nil
	}
	given, err := b.givenByWakes(ctx, id)
	if err != nil {
		return err
	}
	maps.Copy(given, told)
	var shown []mail.Mark
	var dropped []string
	for message, at := range given {
		switch signs.OutcomeOf(call, message, at, now) {
		case mail.OutcomeShown:
			shown = append(shown, mail.Mark{MessageID: message, Recipient: id, At: now, Via: mail.ViaActivity, Evidence: nextActivity(call.HostEvent)})
		case mail.OutcomeDropped:
			dropped = append(dropped, message)
		case mail.OutcomeOpen:
			continue
		}
		delete(given, message)
	}
	whole := slices.DeleteFunc(shown, func(m mail.Mark) bool { return told[m.MessageID] != 0 }) // an announcement is no reading
	if err := b.opts.DB.Record(ctx, bridge.StageConsumed, whole); err != nil {
		return err
	}
	if err := b.unseen(ctx, s, id, box, dropped); err != nil {
		return err
	}
	b.mu.Lock()
	for _, mark := range shown {
		box.Hooks.Shown(mark.MessageID)
	}
	box.Hooks.Judged(len(given) > 0 || box.Handovers() != handovers)
	b.mu.Unlock()
	if len(whole) > 0 {
		b.changed()
	}
	return nil
}

// givenByWakes is the unread mail that wake hooks or the channel gave to the host,
// with when.
func (b *Broker) givenByWakes(ctx context.Context, peerID string) (map[string]int64, error) {
	byWake := func(d mail.Delivery) bool { return d.Handed.Via.IsWake() }
	unread, err := b.opts.DB.Unread(ctx, peerID, hookScan, byWake)
	given := map[string]int64{}
	for _, d := range unread {
		if byWake(d) {
			given[d.ID] = d.Handed.At
		}
	}
	return given, err
}

// unseen makes mail that nobody saw unread again, and forgets that the session
// was told of it. A channel that did not show it is none: claude may be asked for
// one and drop all that comes, without a word, where its maker permits none.
func (b *Broker) unseen(ctx context.Context, s *session.Session, peerID string, box *mailbox.Box, messages []string) error {
	for _, message := range messages {
		if err := b.opts.DB.Unhand(ctx, message, peerID); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, message := range messages {
		box.Unannounce(message)
		if box.Hooks.Dropped(message) == wake.HookPushed {
			s.Channel = false
		}
	}
	return nil
}

// watchWake looks after a wake: without any activity of the session in time,
// its mail is unread again, for the standby and for the next turn. A hook that
// still holds the mail has not handed it over yet: its time has not begun.
func (b *Broker) watchWake(s *session.Session, ids []string) {
	given := b.nowMillis()
	b.tasks.Go(func() {
		timer := time.NewTimer(b.opts.Pace.Confirm)
		defer timer.Stop()
		var id string
		var box *mailbox.Box
		for held := true; held; timer.Reset(b.opts.Pace.Confirm) {
			select {
			case <-timer.C:
			case <-b.life.Done():
				return
			}
			b.mu.Lock()
			id, box = s.ID, b.boxes[s.ID]
			asleep := box != nil && box.LastActive() <= given
			held = asleep && slices.ContainsFunc(ids, func(message string) bool { return box.IsLeased(message) })
			b.mu.Unlock()
			if !asleep {
				return
			}
		}
		if err := b.unseen(b.life, s, id, box, ids); err != nil {
			b.opts.Log.Warn("mail of a wake without effect could not be offered again", "err", err)
		}
		b.mu.Lock()
		if b.boxes[id] == box {
			box.Signal()
		}
		b.mu.Unlock()
		b.changed()
	})
}

// take lends the mail that is to be pushed into a session's channel (CHT-03).
// Nothing answers a push, so it is a wake: the next signs of an idle session tell
// whether the channel showed it. One at work has its hooks.
func (b *Broker) take(ctx context.Context, l *link, caller api.Caller) (api.Inbox, error) {
	s, err := b.callerOf(ctx, l, caller)
	if err != nil {
		return api.Inbox{}, err
	}
	answer := api.Inbox{Messages: []api.InboxMessage{}}
	mayWake := b.mayWake(s)
	answer.Loan, _, err = b.lend(ctx, l, s, hookScan, mayWake, func(free []mail.Delivery) mail.Presentation {
		short := slices.DeleteFunc(free, func(d mail.Delivery) bool { return len(d.Body) > api.MaxChannelBodyBytes })
		if s.Busy || !s.Channel || !slices.ContainsFunc(short, mayWake) {
			return mail.Presentation{}
		}
		slices.SortStableFunc(short, mayWake.Compare)
		fit := mail.Fitting(short[:min(len(short), inboxLimit)], inboxChars)
		for _, d := range fit {
			answer.Messages = append(answer.Messages, inboxMessage(d.Message))
		}
		b.boxes[s.ID].Hooks.Push(mail.IDs(fit), b.nowMillis())
		return mail.Presentation{Shown: fit}
	})
	if err != nil || answer.Loan == nil {
		return api.Inbox{Messages: []api.InboxMessage{}}, err
	}
	b.watchWake(s, answer.Loan.Messages)
	return answer, nil
}
