package broker

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// mailbox is the moving part of one live session's mail; what lasts is in the
// store.
type mailbox struct {
	lent      map[string]*loan // by message id: given out, not yet confirmed
	announced map[string]bool  // long messages that the session was told of
	// handedOpen says that mail was handed over and no activity followed yet.
	// It begins true: an earlier broker may have handed some.
	handedOpen bool
	handovers  int           // counts them: one may come while activity is noted
	arrived    chan struct{} // closed when mail arrives, then replaced
	formerIDs  []string      // peer ids whose mail is this session's too
	released   int           // counts loans that ended: mail read before one may be out of date
	lastActive int64         // last sign of activity, Unix epoch milliseconds; 0 for none yet
	wake       wakeState
	mod        modState
	looking    bool // a look into the CLI's own store is coming
}

func newMailbox() *mailbox {
	return &mailbox{
		lent: map[string]*loan{}, announced: map[string]bool{}, handedOpen: true, arrived: make(chan struct{}),
		wake: wakeState{open: true}, mod: modState{open: true}, // an earlier broker may have given some
	}
}

// signal wakes everyone who waits for mail of this box.
func (m *mailbox) signal() {
	close(m.arrived)
	m.arrived = make(chan struct{})
}

// loan is mail given to a connection until it is confirmed or the connection
// ends.
type loan struct {
	session.Loan
	announced []string // ids of the messages that its text only tells of
	holder    *link
	box       *mailbox // nil until the holder is part of a session
}

// lend gives the session's unread mail to the connection. take chooses from
// what is not already given out or handed over, oldest first: at least limit
// messages where there are so many, and what first names before the rest; what
// it returns is lent. Choosing and lending are one step, so that two hooks of one
// session never show the same message.
func (b *Broker) lend(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (*session.Loan, mail.Presentation, error) {
	b.importReceipts(ctx)
	for {
		given, taken, stale, err := b.tryLend(ctx, l, s, limit, first, take)
		if !stale || err != nil {
			return given, taken, err
		}
	}
}

// tryLend reports stale when a loan began or ended, or the session's id changed,
// between reading its mail and choosing from it: what was read may have been
// shown. What is lent or announced is read past, so that mail behind it does not
// wait for it.
func (b *Broker) tryLend(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (given *session.Loan, taken mail.Presentation, stale bool, err error) {
	b.mu.Lock()
	id, box, released, out, told := s.ID, b.boxes[s.ID], 0, 0, 0
	if box != nil {
		released, out, told = box.released, len(box.lent), len(box.announced)
	}
	b.mu.Unlock()
	if box == nil {
		return nil, taken, false, bridge.Errorf(bridge.Unavailable, "the session has left")
	}
	unread, err := b.opts.DB.Waiting(ctx, id, limit+out+told, first)
	if err != nil {
		return nil, taken, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.ID != id || b.boxes[id] != box || box.released != released || len(box.lent) > out {
		return nil, taken, true, nil
	}
	taken = take(slices.DeleteFunc(unread, func(d mail.Delivery) bool {
		return d.Handed.Happened() || box.lent[d.ID] != nil
	}))
	if len(taken.Shown) == 0 && len(taken.Announced) == 0 {
		return nil, taken, false, nil
	}
	lent := &loan{Loan: session.Loan{ID: uuid.NewString(), Recipient: id, Messages: mail.IDs(taken.Shown), Process: s.Process}, announced: mail.IDs(taken.Announced), holder: l}
	l.loans[lent.ID] = lent
	box.holdLocked(lent)
	return &lent.Loan, taken, false, nil
}

// holdLocked keeps the loan's messages from being given to anyone else.
func (m *mailbox) holdLocked(given *loan) {
	given.box = m
	for _, id := range slices.Concat(given.Messages, given.announced) {
		if m.lent[id] == nil {
			m.lent[id] = given
		}
	}
}

// toldLocked notes what became of a loan: the session knows of the long messages
// that its text announced, and those that it holds whole need no announcement.
func (m *mailbox) toldLocked(confirmed session.Loan) {
	for _, id := range confirmed.Messages {
		delete(m.announced, id)
	}
	for _, given := range m.lent {
		if given.ID != confirmed.ID {
			continue
		}
		for _, id := range given.announced {
			m.announced[id] = true
		}
	}
}

// handedLocked notes that mail was handed over: the next activity counts it as
// read, or judges the wake that it came by.
func (m *mailbox) handedLocked(via mail.Via) {
	m.handedOpen = true
	m.handovers++
	m.wake.open = m.wake.open || via.IsWake()
}

// keepLoansLocked notes the mail that an earlier broker lent to the process of
// this connection. It is held as soon as the connection is part of a session.
func (b *Broker) keepLoansLocked(l *link, loans []session.Loan) {
	for _, lent := range loans {
		if l.loans[lent.ID] == nil {
			l.loans[lent.ID] = &loan{Loan: lent, holder: l}
		}
	}
}

// releaseLocked takes back what was never confirmed: it is offered again.
func (b *Broker) releaseLocked(given *loan) {
	delete(given.holder.loans, given.ID)
	box := given.box
	if box == nil {
		return
	}
	maps.DeleteFunc(box.lent, func(_ string, other *loan) bool { return other == given })
	box.released++
	box.signal()
}

// giveBack ends a loan that reached nobody.
func (b *Broker) giveBack(_ context.Context, l *link, args api.Return) (api.Empty, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if given := l.loans[args.Loan]; given != nil {
		b.releaseLocked(given)
	}
	return api.Empty{}, nil
}

// confirm makes durable what became of a loan (MSG-06). A loan of an earlier
// broker is confirmed just the same, and so is one that was given before the
// session learned its lasting id. It is carried out although the caller is gone
// meanwhile: what was shown was shown.
func (b *Broker) confirm(ctx context.Context, l *link, args api.Confirm) (api.Empty, error) {
	args, err := checkConfirm(l.conn.Hello().Role, args)
	if err != nil {
		return api.Empty{}, err
	}
	at := b.nowMillis()
	if err := b.opts.DB.Record(context.WithoutCancel(ctx), args.Stage, b.marksOf(args, at)); err != nil {
		return api.Empty{}, err
	}
	b.mu.Lock()
	if _, box := b.boxOfLocked(args.Loan.Recipient); box != nil {
		box.toldLocked(args.Loan)
		for id, given := range box.lent {
			if given.ID == args.Loan.ID || slices.Contains(args.Loan.Messages, id) {
				b.releaseLocked(given)
			}
		}
		if args.Stage == bridge.StageHanded {
			box.handedLocked(args.Via)
		}
	}
	b.changedLocked()
	b.mu.Unlock()
	return api.Empty{}, nil
}

// marksOf names each delivery of a loan, under the session's former id too: its
// mail may still be on the way to the new one.
func (b *Broker) marksOf(args api.Confirm, at int64) []mail.Mark {
	recipients := []string{args.Loan.Recipient}
	b.mu.Lock()
	if id, box := b.boxOfLocked(args.Loan.Recipient); box != nil && id != args.Loan.Recipient {
		recipients = append(recipients, id)
	}
	b.mu.Unlock()
	var marks []mail.Mark
	for _, recipient := range recipients {
		for _, id := range args.Loan.Messages {
			marks = append(marks, mail.Mark{MessageID: id, Recipient: recipient, At: at, Via: args.Via, Evidence: args.Via.Evidence(args.Detail), Process: args.Loan.Process})
		}
	}
	return marks
}

// boxOfLocked finds the live mailbox of a peer id that its session has or had.
func (b *Broker) boxOfLocked(recipient string) (id string, box *mailbox) {
	if box := b.boxes[recipient]; box != nil {
		return recipient, box
	}
	for id, box := range b.boxes {
		if slices.Contains(box.formerIDs, recipient) {
			return id, box
		}
	}
	return "", nil
}

// active records a sign of activity: everything handed to the session before
// counts as read from now on.
func (b *Broker) active(ctx context.Context, s *session.Session, evidence string) error {
	if err := b.offerAgain(ctx, s, false); err != nil {
		return err
	}
	if err := b.judgeWakes(ctx, s, session.HookCall{HostEvent: evidence}); err != nil {
		return err
	}
	return b.consumeHanded(ctx, s, nextActivity(evidence))
}

// noteActive keeps when the session last showed a sign of life.
func (b *Broker) noteActive(s *session.Session) (at int64) {
	at = b.nowMillis()
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[s.ID]; box != nil {
		box.lastActive = at
		box.wake.answered()
	}
	return at
}

func (b *Broker) consumeHanded(ctx context.Context, s *session.Session, evidence string) error {
	at := b.noteActive(s)
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	if box == nil || !box.handedOpen {
		b.mu.Unlock()
		return nil
	}
	handovers, here := box.handovers, b.processesLocked(id)
	b.mu.Unlock()
	marks, err := b.opts.DB.ConsumeHanded(ctx, id, at, at, evidence, here.earlier)
	if err != nil {
		return err
	}
	b.mu.Lock()
	box.handedOpen = box.handovers != handovers // handed meanwhile: open until the next sign
	b.mu.Unlock()
	if len(marks) > 0 {
		b.changed()
	}
	return nil
}

// importReceipts brings in the receipts that no broker heard.
func (b *Broker) importReceipts(ctx context.Context) {
	err := b.journal.Import(func(lines []ipc.JournalLine) error { return b.recordLines(ctx, lines) })
	if err != nil && ctx.Err() == nil {
		b.opts.Log.Warn("receipts in the read journal wait for another try", "err", err)
	}
}

func (b *Broker) recordLines(ctx context.Context, lines []ipc.JournalLine) error {
	byStage := map[bridge.Stage][]mail.Mark{}
	for _, line := range lines {
		mark, err := markOfLine(line)
		if err != nil {
			return err
		}
		byStage[line.Stage] = append(byStage[line.Stage], mark)
	}
	for _, stage := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
		if len(byStage[stage]) == 0 {
			continue
		}
		if err := b.opts.DB.Record(ctx, stage, byStage[stage]); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mark := range byStage[bridge.StageHanded] {
		if _, box := b.boxOfLocked(mark.Recipient); box != nil {
			box.handedLocked(mark.Via)
		}
	}
	return nil
}
