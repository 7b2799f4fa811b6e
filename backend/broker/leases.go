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

// leases is the part of the broker that leases mail until it is acknowledged.
type leases struct {
	*core
	journal ipc.Journal
}

// lease leases the session's unread mail to the connection. take chooses from the mail
// that is neither leased nor handed over, oldest first. It gets at least limit messages
// if there are as many, with those that first names before the rest. lease leases what
// take returns. Choosing and leasing are one step, so two hooks of one session never show
// the same message.
func (p *leases) lease(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (*session.Lease, mail.Presentation, error) {
	p.importAcks(ctx)
	for {
		lease, presentation, stale, err := p.tryLease(ctx, l, s, limit, first, take)
		if !stale || err != nil {
			return lease, presentation, err
		}
	}
}

// tryLease makes one attempt. It reports stale if, between reading the mail and choosing
// from it, a lease began or ended or the session's id changed. What was read may then
// have been shown. It reads past leased and announced mail, so that mail behind it does
// not wait.
func (p *leases) tryLease(ctx context.Context, l *link, s *session.Session, limit int, first mail.Priority, take func([]mail.Delivery) mail.Presentation) (lease *session.Lease, presentation mail.Presentation, stale bool, err error) {
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil {
		p.Unlock()
		return nil, presentation, false, mailbox.ErrLeft
	}
	reading := box.Reading()
	p.Unlock()
	unread, err := p.Exchanges.Waiting(ctx, id, limit+reading.Hidden(), first)
	if err != nil {
		return nil, presentation, false, err
	}
	p.Lock()
	defer p.Unlock()
	if s.ID != id || p.Boxes[id] != box || box.IsStale(reading) {
		return nil, presentation, true, nil
	}
	presentation = take(box.Free(unread))
	if len(presentation.Shown) == 0 && len(presentation.Announced) == 0 {
		return nil, presentation, false, nil
	}
	return &box.Lease(&l.Leases, s, presentation).Lease, presentation, false, nil
}

// nack ends a lease whose mail reached no session.
func (p *leases) nack(_ context.Context, l *link, args api.Nack) (api.Empty, error) {
	p.Lock()
	defer p.Unlock()
	if lease := l.Leases.Find(args.Lease); lease != nil {
		lease.Release()
	}
	return api.Empty{}, nil
}

// ack records the outcome of a lease durably (MSG-06). It also accepts a lease of an
// earlier broker, and one given before the session learned its lasting id. It completes
// even if the caller has disconnected, because the mail was shown. It fails with Denied
// if a job reports on another's mail.
func (p *leases) ack(ctx context.Context, l *link, args api.Ack) (api.Empty, error) {
	args, err := args.Of(l.Conn.Hello().Role)
	if err != nil {
		return api.Empty{}, err
	}
	if inside := p.JobBehind(l); inside != "" && !p.IsOf(l, args.Lease.Recipient) {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "%s cannot say what became of another's mail", inside)
	}
	at := p.nowMillis()
	spend := p.costs.Handed(ctx, args.Lease, args.Via)
	if err := p.opts.DB.Record(context.WithoutCancel(ctx), args.Stage, p.marksOf(args, at)); err != nil {
		return api.Empty{}, err
	}
	spend()
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

// marksOf returns a mark for each delivery of a lease. It adds marks under the session's
// new id too, because mail may still be on its way there.
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

// importAcks imports the acks of the read journal that no broker received. It logs errors.
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
		spend := p.costs.Journaled(ctx, byStage[stage])
		if err := p.opts.DB.Record(ctx, stage, byStage[stage]); err != nil {
			return err
		}
		spend()
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

// mayWakeNow returns a filter for mail that may start a turn of the idle session s now. It
// is mayWake without the mail that the limits of wakes hold back (QUI-03).
func (p *leases) mayWakeNow(s *session.Session) mail.Priority {
	mayWake := p.mayWake(s)
	p.Lock()
	defer p.Unlock()
	return mayWake.And(p.Boxes.Due(s, p.nowMillis()))
}

// mayWake returns a filter for mail that may start or continue a turn of s in its present
// state. Mail that was already announced to s does not wake it again.
func (p *leases) mayWake(s *session.Session) mail.Priority {
	p.Lock()
	defer p.Unlock()
	target := session.Session{ID: s.ID, Name: s.Name, SessionID: s.SessionID}
	policy := s.Wake
	announced := map[string]bool{}
	if box := p.Boxes[s.ID]; box != nil {
		announced = box.Announced()
	}
	return func(d mail.Delivery) bool {
		return !announced[d.ID] && mail.MayWake(d.Message, mail.Direct(d.Message, &target), policy)
	}
}
