package broker

import (
	"context"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// leases is the part that gives mail out until it is acknowledged.
type leases struct {
	*core
	journal ipc.Journal
}

// lease gives the session's unread mail to the connection. take chooses from
// what is not already given out or handed over, oldest first: at least limit
// messages where there are so many, and what first names before the rest; what
// it returns is leased. Choosing and leasing are one step, so that two hooks of one
// session never show the same message.
func (p *leases) lease(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (*session.Lease, mail.Presentation, error) {
	p.importAcks(ctx)
	for {
		given, taken, stale, err := p.tryLease(ctx, l, s, limit, first, take)
		if !stale || err != nil {
			return given, taken, err
		}
	}
}

// tryLease reports stale when a lease began or ended, or the session's id changed,
// between reading its mail and choosing from it: what was read may have been
// shown. What is leased or announced is read past, so that mail behind it does not
// wait for it.
func (p *leases) tryLease(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (given *session.Lease, taken mail.Presentation, stale bool, err error) {
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil {
		p.Unlock()
		return nil, taken, false, mailbox.ErrLeft
	}
	reading := box.Reading()
	p.Unlock()
	unread, err := p.opts.DB.Waiting(ctx, id, limit+reading.Beside(), first)
	if err != nil {
		return nil, taken, false, err
	}
	p.Lock()
	defer p.Unlock()
	if s.ID != id || p.Boxes[id] != box || box.IsStale(reading) {
		return nil, taken, true, nil
	}
	taken = take(box.Free(unread))
	if len(taken.Shown) == 0 && len(taken.Announced) == 0 {
		return nil, taken, false, nil
	}
	return &box.Lease(&l.Leases, s, taken).Lease, taken, false, nil
}

// nack ends a lease that reached nobody.
func (p *leases) nack(_ context.Context, l *link, args api.Nack) (api.Empty, error) {
	p.Lock()
	defer p.Unlock()
	if lease := l.Leases.Find(args.Lease); lease != nil {
		lease.Release()
	}
	return api.Empty{}, nil
}

// ack makes durable what became of a lease (MSG-06). A lease of an earlier
// broker is acknowledged just the same, and so is one that was given before the
// session learned its lasting id. It is carried out although the caller is gone
// meanwhile: what was shown was shown.
func (p *leases) ack(ctx context.Context, l *link, args api.Ack) (api.Empty, error) {
	args, err := args.Of(l.Conn.Hello().Role)
	if err != nil {
		return api.Empty{}, err
	}
	if inside := p.JobBehind(l); inside != "" && !p.IsOf(l, args.Lease.Recipient) {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "%s cannot say what became of another's mail", inside)
	}
	at := p.nowMillis()
	if err := p.opts.DB.Record(context.WithoutCancel(ctx), args.Stage, p.marksOf(args, at)); err != nil {
		return api.Empty{}, err
	}
	p.Lock()
	if _, box := p.Boxes.Of(args.Lease.Recipient); box != nil {
		box.Ack(args.Lease)
		if args.Stage == bridge.StageHanded {
			box.Handed(args.Via)
		}
	}
	p.changed()
	p.Unlock()
	return api.Empty{}, nil
}

// marksOf names each delivery of a lease, under the session's former id too: its
// mail may still be on the way to the new one.
func (p *leases) marksOf(args api.Ack, at int64) []mail.Mark {
	recipients := []string{args.Lease.Recipient}
	p.Lock()
	if id, box := p.Boxes.Of(args.Lease.Recipient); box != nil && id != args.Lease.Recipient {
		recipients = append(recipients, id)
	}
	p.Unlock()
	var marks []mail.Mark
	for _, recipient := range recipients {
		for _, id := range args.Lease.Messages {
			marks = append(marks, mail.Mark{MessageID: id, Recipient: recipient, At: at, Via: args.Via, Evidence: args.Via.Evidence(args.Detail), Process: args.Lease.Process})
		}
	}
	return marks
}

// importAcks brings in the acks that no broker heard.
func (p *leases) importAcks(ctx context.Context) {
	err := p.journal.Import(func(lines []ipc.JournalLine) error { return p.recordAcks(ctx, lines) })
	if err != nil && ctx.Err() == nil {
		p.opts.Log.Warn("acks in the read journal wait for another try", "err", err)
	}
}

func (p *leases) recordAcks(ctx context.Context, lines []ipc.JournalLine) error {
	byStage := map[bridge.Stage][]mail.Mark{}
	for _, line := range lines {
		mark, err := line.Mark()
		if err != nil {
			return err
		}
		byStage[line.Stage] = append(byStage[line.Stage], mark)
	}
	for _, stage := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
		if len(byStage[stage]) == 0 {
			continue
		}
		if err := p.opts.DB.Record(ctx, stage, byStage[stage]); err != nil {
			return err
		}
	}
	p.Lock()
	defer p.Unlock()
	for _, mark := range byStage[bridge.StageHanded] {
		if _, box := p.Boxes.Of(mark.Recipient); box != nil {
			box.Handed(mark.Via)
		}
	}
	return nil
}

// mayWake tells which mail may start a turn of s or keep one going, as s is at
// this moment. What s was told of already does no more.
func (p *leases) mayWake(s *session.Session) mail.Priority {
	p.Lock()
	defer p.Unlock()
	target := session.Session{ID: s.ID, Name: s.Name, SessionID: s.SessionID}
	policy := s.Wake
	told := map[string]bool{}
	if box := p.Boxes[s.ID]; box != nil {
		told = box.Announced()
	}
	return func(d mail.Delivery) bool {
		return !told[d.ID] && mail.MayWake(d.Message, mail.Direct(d.Message, &target), policy)
	}
}
