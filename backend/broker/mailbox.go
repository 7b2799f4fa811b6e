package broker

import (
	"context"
	"maps"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/mail"
	"bridge/backend/session"

	"github.com/google/uuid"
)

// mailbox is the moving part of one live session's mail; what lasts is in the
// store.
type mailbox struct {
	lent      map[string]*loan // by message id: given out, not yet confirmed
	announced map[string]bool  // long messages that a hook announced
	// handedOpen says that mail was handed over and no activity followed yet.
	// It begins true: an earlier broker may have handed some.
	handedOpen bool
	lastHanded int64         // when mail was last handed over, Unix epoch milliseconds
	arrived    chan struct{} // closed when mail arrives, then replaced
	formerIDs  []string      // peer ids whose mail is this session's too
}

func newMailbox() *mailbox {
	return &mailbox{lent: map[string]*loan{}, announced: map[string]bool{}, handedOpen: true, arrived: make(chan struct{})}
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
	holder *link
}

// lend gives the session's unread mail to the connection. take chooses from
// what is not already given out or handed over, oldest first, at most limit;
// what it returns is lent. Choosing and lending are one step, so that two hooks
// of one session never show the same message.
func (b *Broker) lend(ctx context.Context, l *link, s *session.Session, limit int, take func([]mail.Delivery) []mail.Delivery) (*session.Loan, []mail.Delivery, error) {
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	b.mu.Unlock()
	if box == nil {
		return nil, nil, bridge.Errorf(bridge.Unavailable, "the session has left")
	}
	unread, err := b.opts.DB.Unread(ctx, id, limit)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	free := slices.DeleteFunc(unread, func(d mail.Delivery) bool {
		return d.Handed.Happened() || box.lent[d.ID] != nil
	})
	taken := take(free)
	if len(taken) == 0 {
		return nil, nil, nil
	}
	given := &loan{Loan: session.Loan{ID: uuid.NewString(), Recipient: id}, holder: l}
	for _, d := range taken {
		given.Messages = append(given.Messages, d.ID)
		box.lent[d.ID] = given
	}
	l.loans[given.ID] = given
	return &given.Loan, taken, nil
}

// releaseLocked takes back what was never confirmed: it is offered again.
func (b *Broker) releaseLocked(given *loan) {
	delete(given.holder.loans, given.ID)
	box := b.boxes[given.Recipient]
	if box == nil {
		return
	}
	maps.DeleteFunc(box.lent, func(_ string, other *loan) bool { return other == given })
	box.signal()
}

// confirm makes durable what became of a loan (MSG-06). A loan of an earlier
// broker is confirmed just the same.
func (b *Broker) confirm(ctx context.Context, _ *link, args ipc.Confirm) (ipc.Empty, error) {
	if args.Stage != bridge.StageHanded && args.Stage != bridge.StageConsumed {
		return ipc.Empty{}, bridge.Errorf(bridge.Invalid, "a loan is confirmed as handed or consumed, not %q", args.Stage)
	}
	if err := bridge.CheckText("the evidence", args.Evidence, maxEvidenceChars); err != nil {
		return ipc.Empty{}, err
	}
	at := b.nowMillis()
	marks := make([]mail.Mark, 0, len(args.Loan.Messages))
	for _, id := range args.Loan.Messages {
		marks = append(marks, mail.Mark{MessageID: id, Recipient: args.Loan.Recipient, At: at, Evidence: args.Evidence})
	}
	if err := b.opts.DB.Record(ctx, args.Stage, marks); err != nil {
		return ipc.Empty{}, err
	}
	b.mu.Lock()
	if box := b.boxes[args.Loan.Recipient]; box != nil {
		for _, id := range args.Loan.Messages {
			if given := box.lent[id]; given != nil {
				b.releaseLocked(given)
			}
		}
		if args.Stage == bridge.StageHanded {
			box.handedOpen, box.lastHanded = true, at
		}
	}
	b.mu.Unlock()
	b.changed()
	return ipc.Empty{}, nil
}

// maxEvidenceChars bounds the words of an evidence.
const maxEvidenceChars = 200

// active records a sign of activity: everything handed to the session before
// counts as read from now on.
func (b *Broker) active(ctx context.Context, s *session.Session, evidence string) error {
	at := b.nowMillis()
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	open := box != nil && box.handedOpen
	b.mu.Unlock()
	if !open {
		return nil
	}
	marks, err := b.opts.DB.ConsumeHanded(ctx, id, at, at, evidence)
	if err != nil {
		return err
	}
	b.mu.Lock()
	box.handedOpen = box.lastHanded > at // handed meanwhile: open until the next sign
	b.mu.Unlock()
	if len(marks) > 0 {
		b.changed()
	}
	return nil
}

// importReceipts brings in the receipts that no broker heard.
func (b *Broker) importReceipts(ctx context.Context) {
	err := b.journal.Import(func(lines []ipc.JournalLine) error { return b.recordLines(ctx, lines) })
	if err != nil {
		b.opts.Log.Warn("receipts in the read journal wait for another try", "err", err)
	}
}

func (b *Broker) recordLines(ctx context.Context, lines []ipc.JournalLine) error {
	byStage := map[bridge.Stage][]mail.Mark{}
	for _, line := range lines {
		if line.Stage != bridge.StageHanded && line.Stage != bridge.StageConsumed {
			return bridge.Errorf(bridge.Invalid, "a receipt says handed or consumed, not %q", line.Stage)
		}
		mark := mail.Mark{MessageID: line.MessageID, Recipient: line.Recipient, At: line.At, Evidence: line.Evidence}
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
	return nil
}
