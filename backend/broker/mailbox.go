package broker

import (
	"context"

	"bridge/backend/bridge"
	"bridge/backend/broker/mailbox"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/session"
)

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
	id, box := s.ID, b.boxes[s.ID]
	if box == nil {
		b.mu.Unlock()
		return nil, taken, false, mailbox.ErrLeft
	}
	reading := box.Reading()
	b.mu.Unlock()
	unread, err := b.opts.DB.Waiting(ctx, id, limit+reading.Beside(), first)
	if err != nil {
		return nil, taken, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.ID != id || b.boxes[id] != box || box.IsStale(reading) {
		return nil, taken, true, nil
	}
	taken = take(box.Free(unread))
	if len(taken.Shown) == 0 && len(taken.Announced) == 0 {
		return nil, taken, false, nil
	}
	return &box.Lease(&l.leases, s, taken).Loan, taken, false, nil
}

// giveBack ends a loan that reached nobody.
func (b *Broker) giveBack(_ context.Context, l *link, args api.Return) (api.Empty, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lease := l.leases.Find(args.Loan); lease != nil {
		lease.Return()
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
	if _, box := b.boxes.Of(args.Loan.Recipient); box != nil {
		box.Ack(args.Loan)
		if args.Stage == bridge.StageHanded {
			box.Handed(args.Via)
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
	if id, box := b.boxes.Of(args.Loan.Recipient); box != nil && id != args.Loan.Recipient {
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
		box.Active(at)
	}
	return at
}

func (b *Broker) consumeHanded(ctx context.Context, s *session.Session, evidence string) error {
	at := b.noteActive(s)
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	if box == nil || !box.Open() {
		b.mu.Unlock()
		return nil
	}
	handovers, here := box.Handovers(), b.processesLocked(id)
	b.mu.Unlock()
	marks, err := b.opts.DB.ConsumeHanded(ctx, id, at, at, evidence, here.earlier)
	if err != nil {
		return err
	}
	b.mu.Lock()
	box.Consumed(handovers)
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
		if _, box := b.boxes.Of(mark.Recipient); box != nil {
			box.Handed(mark.Via)
		}
	}
	return nil
}
