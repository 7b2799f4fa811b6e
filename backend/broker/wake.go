package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/chat"
	"bridge/backend/ipc/api"
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
	// open says that wake hooks or the channel may have given mail to the host of
	// which no sign of the session has spoken yet. Of that, pushed is the channel's
	// and told is what was only announced, with when; both by message id. lastStep
	// and lastStop are when steps and turns last ended.
	open     bool
	pushed   map[string]bool
	told     map[string]int64
	lastStep int64
	lastStop int64
	// scheduled says that a wake by queue is being prepared. queued counts those
	// that may be in the queue without any activity since, and asked is when the
	// last of them was, Unix epoch milliseconds.
	scheduled bool
	queued    int
	asked     int64
	begun     int64  // when a wake hook or the channel was last given mail, Unix epoch milliseconds
	problem   string // what the queue made of the last push, "" when it took it
}

// answered notes activity: an outstanding wake has done its work.
func (w *wakeState) answered() { w.queued = 0 }

// tried counts a wake by each of the messages.
func (w *wakeState) tried(messages []string) {
	if w.tries == nil {
		w.tries = map[string]int{}
	}
	for _, id := range messages {
		w.tries[id]++
	}
}

// Pace is the rhythm of wakes. A zero member means the usual one.
type Pace struct {
	// Debounce gathers mail that comes together into one wake.
	Debounce time.Duration
	// Confirm is how long a woken session may take to show activity before its
	// mail is offered to the standby.
	Confirm time.Duration
	// Settle is how long a host may take to read what a wake hook gave it.
	Settle time.Duration
	// Doubt is how often a session that is at work, with mail that waits for the
	// end of its turn, is asked whether it still is.
	Doubt time.Duration
	// Look is how long after a sign of life the CLI's own store is looked into
	// for native children: what happens together is one look.
	Look time.Duration
}

func (p Pace) orUsual() Pace {
	if p.Look == 0 {
		p.Look = 500 * time.Millisecond
	}
	if p.Doubt == 0 {
		p.Doubt = 15 * time.Second
	}
	if p.Settle == 0 {
		p.Settle = 10 * time.Second
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
	// activity: then the next mail may ask again, maxQueuedWakes in all. Each
	// stays in the queue until the session reads it, as a turn of its own.
	wakeOutstanding = 2 * time.Minute
	maxQueuedWakes  = 2
	// maxWakeTries is how often one message may be given to wake hooks.
	maxWakeTries = 2
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
	box := b.boxes[peerID]
	switch {
	case box == nil:
	case result == chat.QueueAccepted:
		box.wake.problem = ""
	case result == chat.QueueUnclear:
		box.wake.problem = "It is not known whether codex's queue took what it was given last: " + reason + "."
	default:
		box.wake.problem = "codex's queue did not take what it was given last: " + reason + "."
	}
}

// queueWakeLocked schedules one wake of an idle codex session. Mail that comes
// until it runs joins it; while one is outstanding nothing is asked.
func (b *Broker) queueWakeLocked(s *session.Session) {
	wake := &b.boxes[s.ID].wake
	outstanding := wake.queued > 0 && b.nowMillis()-wake.asked < wakeOutstanding.Milliseconds()
	if wake.scheduled || outstanding || wake.queued >= maxQueuedWakes {
		return
	}
	wake.scheduled = true
	b.soon(b.opts.Pace.Debounce, func(ctx context.Context) { b.queueWake(ctx, s) })
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
		case chat.QueueAccepted:
			box.wake.queued++
		case chat.QueueUnclear: // it may be in: no other until the session shows a sign
			box.wake.queued = maxQueuedWakes
		default: // refused: the next mail may ask again
		}
		box.wake.asked = b.nowMillis()
	}
	if result != "" {
		b.noteQueueLocked(s.ID, result, reason)
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
	if len(box.wake.waiting) == 0 {
		b.changedLocked() // it can be woken now
	}
	box.wake.waiting[standby] = place
	return place, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if box.wake.waiting[standby] != place {
			return
		}
		delete(box.wake.waiting, standby)
		if len(box.wake.waiting) == 0 {
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
		if held = some && (s.Busy || box.mod.out != ""); held || !some {
			return mail.Presentation{}
		}
		text := mail.Present(slices.DeleteFunc(b.unannouncedLocked(s, free), box.wake.notFor(standby)), mine)
		box.wake.tried(mail.IDs(slices.Concat(text.Shown, text.Announced)))
		box.wake.given(mail.IDs(text.Announced), b.nowMillis())
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

// given notes that a wake hook has mail for the host, some of it only announced.
func (w *wakeState) given(announced []string, at int64) {
	w.open, w.begun = true, at
	if w.told == nil {
		w.told = map[string]int64{}
	}
	for _, id := range announced {
		w.told[id] = at
	}
}

// wakeMail tells which mail a wake hook of that role may wake s with.
func (b *Broker) wakeMail(s *session.Session, standby bool) mail.Priority {
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
	handovers, told := box.handovers, maps.Clone(box.wake.told)
	signs := mail.Signs{Active: box.lastActive, Step: box.wake.lastStep, Stop: box.wake.lastStop, Settle: b.opts.Pace.Settle.Milliseconds()}
	open := box.wake.open
	switch call.Event {
	case session.EventTool:
		box.wake.lastStep = now
	case session.EventStop:
		box.wake.lastStop = now
	default: // no point at which the host looks for what waits
	}
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
	maps.DeleteFunc(box.wake.told, func(message string, _ int64) bool { return told[message] != 0 && given[message] == 0 })
	for _, mark := range shown {
		delete(box.wake.pushed, mark.MessageID)
	}
	box.wake.open = len(given) > 0 || len(box.wake.told) > 0 || box.handovers != handovers
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
func (b *Broker) unseen(ctx context.Context, s *session.Session, peerID string, box *mailbox, messages []string) error {
	for _, message := range messages {
		if err := b.opts.DB.Unhand(ctx, message, peerID); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, message := range messages {
		delete(box.announced, message)
		delete(box.wake.told, message)
		if box.wake.pushed[message] {
			delete(box.wake.pushed, message)
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
		if err := b.unseen(b.life, s, id, box, ids); err != nil {
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
		wake := &b.boxes[s.ID].wake
		wake.begun = b.nowMillis()
		wake.tried(mail.IDs(fit))
		if wake.pushed == nil {
			wake.pushed = map[string]bool{}
		}
		for _, id := range mail.IDs(fit) {
			wake.pushed[id] = true
		}
		return mail.Presentation{Shown: fit}
	})
	if err != nil || answer.Loan == nil {
		return api.Inbox{Messages: []api.InboxMessage{}}, err
	}
	b.watchWake(s, answer.Loan.Messages)
	return answer, nil
}
