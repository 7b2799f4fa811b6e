package broker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/chat"
	"bridge/backend/ipc"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// wakeState is how a session's wake stands: at most one is outstanding, and
// mail that comes meanwhile joins it.
type wakeState struct {
	// waiting are the wake hooks that wait in the background, by role: false is
	// the first, true the standby. A newer one supersedes it.
	waiting map[bool]chan struct{}
	tries   map[string]int // wakes that came to nothing, by message id
	// given are the ids of the mail that wake hooks were given and no sign of the
	// session has spoken of yet.
	given []string
	// scheduled says that a wake by queue is being prepared; asked is when one
	// was accepted and not yet answered by activity, Unix epoch milliseconds.
	scheduled bool
	asked     int64
	problem   string // why the last wake was refused, "" when it was not
}

// answered notes activity: an outstanding wake has done its work.
func (w *wakeState) answered() { w.asked, w.given = 0, nil }

// Pace is the rhythm of wakes. A zero member means the usual one.
type Pace struct {
	// Debounce gathers mail that comes together into one wake.
	Debounce time.Duration
	// Confirm is how long a woken session may take to show activity before its
	// mail is offered to the standby.
	Confirm time.Duration
	// Look is how long after a sign of life the CLI's own store is looked into
	// for native children: what happens together is one look.
	Look time.Duration
}

func (p Pace) orUsual() Pace {
	if p.Look == 0 {
		p.Look = 500 * time.Millisecond
	}
	if p.Debounce == 0 {
		p.Debounce = 1500 * time.Millisecond
	}
	if p.Confirm == 0 {
		p.Confirm = 20 * time.Second
	}
	return p
}

const (
	// wakeOutstanding is how long an accepted wake is believed in without any
	// activity: then the next mail may ask again.
	wakeOutstanding = 2 * time.Minute
	// maxWakeTries is how often one message may be given to wake hooks.
	maxWakeTries = 2
)

// wakesLocked reports whether m asks for a wake of s now: the policy allows it,
// the session is idle, and its host has a way to be woken (seed 4.4).
func (b *Broker) wakesLocked(s *session.Session, m bridge.Message) bool {
	return (!s.Busy || s.Channel) && b.canWakeLocked(s) && mail.MayWake(m, mail.Direct(m, s), s.Wake)
}

// canWakeLocked says whether the kind offers an idle wake here: opencode by its
// plugin, codex by its queue, claude while a wake hook waits. Antigravity
// promises none.
func (b *Broker) canWakeLocked(s *session.Session) bool {
	switch s.Kind {
	case bridge.OpenCode:
		return s.Plugin
	case bridge.Codex:
		return s.SessionID != "" && s.HooksSeen
	case bridge.Claude:
		box := b.boxes[s.ID]
		return s.Channel || box != nil && len(box.wake.waiting) > 0
	default:
		return false
	}
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

// noteWakeProblem keeps why a queue refused, for the diagnostics (CHT-19).
func (b *Broker) noteWakeProblem(peerID, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[peerID]; box != nil {
		box.wake.problem = reason
	}
}

// queueWakeLocked schedules one wake of an idle codex session. Mail that comes
// until it runs joins it; while one is outstanding nothing is asked.
func (b *Broker) queueWakeLocked(s *session.Session) {
	wake := &b.boxes[s.ID].wake
	outstanding := wake.asked != 0 && b.nowMillis()-wake.asked < wakeOutstanding.Milliseconds()
	if wake.scheduled || outstanding {
		return
	}
	wake.scheduled = true
	b.tasks.Go(func() {
		timer := time.NewTimer(b.opts.Pace.Debounce)
		defer timer.Stop()
		select {
		case <-timer.C:
			b.queueWake(b.life, s)
		case <-b.life.Done():
		}
	})
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
		box.wake.scheduled = false
		switch result {
		case chat.QueueAccepted, chat.QueueUnclear:
			box.wake.asked = b.nowMillis() // unclear is not asked again either
		default: // refused: the next mail may ask again
		}
		if result != "" {
			box.wake.problem = reason
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
		if d.Handed.Happened() || box.lent[d.ID] != nil || !mayWake(d) {
			continue
		}
		marks = append(marks, mail.Mark{MessageID: d.ID, Recipient: s.ID, At: b.nowMillis(), Evidence: "codex's queue accepted a wake"})
	}
	return marks, s.SessionID
}

// wakeWait serves a wake hook that waits in the background of an idle claude
// session: it ends with mail that may start a turn, or when a newer hook waits.
func (b *Broker) wakeWait(ctx context.Context, l *link, args ipc.WakeWait) (ipc.WakeReply, error) {
	if err := checkHook(args.Call); err != nil {
		return ipc.WakeReply{}, err
	}
	s, learned := b.sessionOfHook(args.Call)
	if s == nil || args.Call.ChildID != "" {
		return ipc.WakeReply{Superseded: true}, nil
	}
	if learned {
		if err := b.settle(ctx, s); err != nil {
			return ipc.WakeReply{}, err
		}
		b.changed()
	}
	superseded, leave := b.takeWaitingPlace(s, args.Standby)
	defer leave()
	for {
		arrived, ok := b.arrivals(s)
		if !ok {
			return ipc.WakeReply{Superseded: true}, nil
		}
		reply, err := b.wakeNow(ctx, l, s, args.Standby)
		if bridge.CodeOf(err) == bridge.Unavailable {
			return ipc.WakeReply{Superseded: true}, nil // the session has left
		}
		if err != nil || reply.Text != "" {
			return reply, err
		}
		select {
		case <-arrived:
		case <-superseded:
			return ipc.WakeReply{Superseded: true}, nil
		case <-ctx.Done():
			return ipc.WakeReply{Superseded: true}, nil
		}
	}
}

// takeWaitingPlace makes the caller the one waiting hook of its role.
func (b *Broker) takeWaitingPlace(s *session.Session, standby bool) (superseded <-chan struct{}, leave func()) {
	place := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[s.ID]
	if box == nil {
		close(place)
		return place, func() {}
	}
	if box.wake.waiting == nil {
		box.wake.waiting = map[bool]chan struct{}{}
	}
	if older := box.wake.waiting[standby]; older != nil {
		close(older)
	}
	box.wake.waiting[standby] = place
	return place, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if box.wake.waiting[standby] == place {
			delete(box.wake.waiting, standby)
		}
	}
}

// wakeNow lends the mail that may wake the session, if it is idle. The first
// hook takes what was never tried; the standby what a first wake did not bring
// to life.
func (b *Broker) wakeNow(ctx context.Context, l *link, s *session.Session, standby bool) (ipc.WakeReply, error) {
	mine := b.wakeMail(s, standby)
	loan, given, err := b.lend(ctx, l, s, hookScan, mine, func(free []mail.Delivery) mail.Presentation {
		if s.Busy || !slices.ContainsFunc(free, mine) {
			return mail.Presentation{}
		}
		box := b.boxes[s.ID]
		text := mail.Present(slices.DeleteFunc(b.unannouncedLocked(s, free), box.wake.notFor(standby)), mine)
		if box.wake.tries == nil {
			box.wake.tries = map[string]int{}
		}
		for _, id := range idsOf(slices.Concat(text.Shown, text.Announced)) {
			box.wake.tries[id]++
			box.wake.given = append(box.wake.given, id)
		}
		return text
	})
	if err != nil || loan == nil {
		return ipc.WakeReply{}, err
	}
	inText := idsOf(slices.Concat(given.Shown, given.Announced))
	marks := make([]mail.Mark, 0, len(inText))
	for _, id := range inText {
		marks = append(marks, mail.Mark{MessageID: id, Recipient: loan.Recipient, At: b.nowMillis(), Evidence: "its wake hook was given the text"})
	}
	b.noteWoken(ctx, marks)
	b.watchWake(s, inText)
	return ipc.WakeReply{Text: given.Text, Loan: loan}, nil
}

// wakeMail tells which mail a wake hook of that role may wake s with.
func (b *Broker) wakeMail(s *session.Session, standby bool) urge {
	mayWake := b.mayWake(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	var known wakeState
	if box := b.boxes[s.ID]; box != nil {
		known.tries = maps.Clone(box.wake.tries)
	}
	skip := known.notFor(standby)
	return func(d mail.Delivery) bool { return !skip(d) && mayWake(d) }
}

// notFor tells which mail is not for the wake hook of that role: the first takes
// what was never tried, the standby what was tried once.
func (w *wakeState) notFor(standby bool) func(mail.Delivery) bool {
	return func(d mail.Delivery) bool {
		tries := w.tries[d.ID]
		return tries >= maxWakeTries || standby != (tries > 0)
	}
}

// takeBackWakes makes mail of a wake unread again when the session's next sign
// shows that the wake did not come first: claude drops a wake now and then, and
// a person may type before it. The woken turn's prompt holds the wake's text,
// so a prompt without it, and a start or end, say that nobody saw the mail. It
// then comes with this very call (MSG-06).
func (b *Broker) takeBackWakes(ctx context.Context, s *session.Session, call session.HookCall) error {
	switch call.Event {
	case session.EventPrompt, session.EventStart, session.EventEnd:
	default: // only a turn does this, and the wake began it
		return nil
	}
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	var unseen []string
	if box != nil {
		for _, message := range box.wake.given {
			if box.lent[message] == nil && !strings.Contains(call.Prompt, message) {
				unseen = append(unseen, message)
			}
		}
	}
	b.mu.Unlock()
	return b.unseen(ctx, id, box, unseen)
}

// unseen makes mail that nobody saw unread again, and forgets that the session
// was told of it.
func (b *Broker) unseen(ctx context.Context, peerID string, box *mailbox, messages []string) error {
	for _, message := range messages {
		if err := b.opts.DB.Unhand(ctx, message, peerID); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, message := range messages {
		delete(box.announced, message)
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
		var box *mailbox
		for held := true; held; timer.Reset(b.opts.Pace.Confirm) {
			select {
			case <-timer.C:
			case <-b.life.Done():
				return
			}
			b.mu.Lock()
			id, box = s.ID, b.boxes[s.ID]
			asleep := box != nil && box.lastActive <= given
			held = asleep && slices.ContainsFunc(ids, func(message string) bool { return box.lent[message] != nil })
			b.mu.Unlock()
			if !asleep {
				return
			}
		}
		if err := b.unseen(b.life, id, box, ids); err != nil {
			b.opts.Log.Warn("mail of a wake without effect could not be offered again", "err", err)
		}
		b.mu.Lock()
		if b.boxes[id] == box {
			box.signal()
		}
		b.mu.Unlock()
		b.changed()
	})
}

// take lends the mail that is to be pushed into a session's channel (CHT-03):
// the session decides when it looks, so it is offered while busy too.
func (b *Broker) take(ctx context.Context, l *link, caller ipc.Caller) (ipc.Inbox, error) {
	s, err := b.callerOf(ctx, l, caller)
	if err != nil {
		return ipc.Inbox{}, err
	}
	answer := ipc.Inbox{Messages: []ipc.InboxMessage{}}
	mayWake := b.mayWake(s)
	answer.Loan, _, err = b.lend(ctx, l, s, hookScan, mayWake, func(free []mail.Delivery) mail.Presentation {
		short := slices.DeleteFunc(free, func(d mail.Delivery) bool { return len(d.Body) > ipc.MaxChannelBodyBytes })
		if !slices.ContainsFunc(short, mayWake) {
			return mail.Presentation{}
		}
		slices.SortStableFunc(short, mayWake.compare)
		fit := fitting(short[:min(len(short), inboxLimit)])
		for _, d := range fit {
			answer.Messages = append(answer.Messages, inboxMessage(d.Message))
		}
		return mail.Presentation{Shown: fit}
	})
	if err != nil || answer.Loan == nil {
		return ipc.Inbox{Messages: []ipc.InboxMessage{}}, err
	}
	return answer, nil
}
