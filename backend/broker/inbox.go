package broker

import (
	"context"
	"errors"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// inbox is the part of the broker by which tools read mail.
type inbox struct{ *core }

// inboxLimit and inboxMost limit the messages of one answer of the tool inbox.
const (
	inboxLimit = 20
	inboxMost  = 100
	// inboxChars limits the size of the bodies of one answer, so that the answer fits a frame.
	inboxChars = 400_000
)

// inbox returns unread mail for a tool call (MSG-06). It fails with Invalid for a wrong limit.
func (p *inbox) inbox(ctx context.Context, l *link, args api.InboxArgs) (api.Inbox, error) {
	s, err := p.reader(ctx, l, args.Caller, "tool inbox")
	if err != nil {
		return api.Inbox{}, err
	}
	limit := args.Limit
	if limit == 0 {
		limit = inboxLimit
	}
	if limit < 1 || limit > inboxMost {
		return api.Inbox{}, bridge.Errorf(bridge.Invalid, "limit must be 1 to %d", inboxMost)
	}
	var deliveries []mail.Delivery
	lease, _, err := p.leases.lease(ctx, l, s, inboxMost, mail.InOrder, func(free []mail.Delivery) mail.Presentation {
		deliveries = mail.Fitting(free[:min(len(free), limit)], inboxChars)
		if !args.MarkRead {
			return mail.Presentation{}
		}
		return mail.Presentation{Shown: deliveries}
	})
	if err != nil {
		return api.Inbox{}, err
	}
	remaining, err := p.waiting(ctx, s)
	if err != nil {
		return api.Inbox{}, err
	}
	if lease == nil {
		remaining = max(0, remaining-len(deliveries)) // shown, but left unread
	}
	answer := api.Inbox{Messages: []api.InboxMessage{}, Remaining: remaining, Lease: lease}
	for _, d := range deliveries {
		answer.Messages = append(answer.Messages, api.InboxMessageOf(d.Message))
	}
	return answer, nil
}

// waiting counts the unread mail of a session that is neither leased nor handed over. The
// ack of the last answer may arrive during this call, after the call itself proved that
// the answer was read. Therefore handed-over mail does not count.
func (p *inbox) waiting(ctx context.Context, s *session.Session) (int, error) {
	p.Lock()
	id, leased := s.ID, 0
	if box := p.Boxes[s.ID]; box != nil {
		leased = box.Leased()
	}
	p.Unlock()
	waiting, err := p.Exchanges.WaitingCount(ctx, id)
	return max(0, waiting-leased), err
}

// reader returns the session that asks for its mail. It fails with Denied for a native
// child, which has no inbox and must not take its parent's mail.
func (p *inbox) reader(ctx context.Context, l *link, caller api.Caller, evidence string) (*session.Session, error) {
	s, err := p.sessions.callerOf(ctx, l, caller)
	if err != nil {
		return nil, err
	}
	if p.children.isChild(caller) {
		return nil, bridge.Errorf(bridge.Denied, "a native child has no inbox of its own: its parent session reads the mail")
	}
	return s, p.activity.noteActivity(ctx, s, evidence)
}

// wait waits at most 110 s for one unread message that matches the filters.
func (p *inbox) wait(ctx context.Context, l *link, args api.WaitArgs) (api.WaitResult, error) {
	s, err := p.reader(ctx, l, args.Caller, "tool wait_for_message")
	if err != nil {
		return api.WaitResult{}, err
	}
	if err := p.CheckWords(args.From); err != nil {
		return api.WaitResult{}, err
	}
	timeout, err := args.Timeout()
	if err != nil {
		return api.WaitResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer p.await(s, args)()
	for {
		arrived, ok := p.Arrivals(s)
		if !ok {
			return api.WaitResult{}, mailbox.ErrLeft
		}
		lease, presentation, err := p.leases.lease(ctx, l, s, 1, args.Wants, args.First)
		if len(presentation.Shown) > 0 {
			message := api.InboxMessageOf(presentation.Shown[0].Message)
			return api.WaitResult{Message: &message, Lease: lease}, nil
		}
		if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return api.WaitResult{}, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return api.WaitResult{}, bridge.Errorf(bridge.Unavailable, "the wait was ended before its time")
			}
			return api.WaitResult{TimedOut: true}, nil
		}
	}
}

// await withholds the mail that a wait asks for from the automatic transports until leave
// is called. Otherwise the session would read that mail twice (JOB-01).
func (p *inbox) await(s *session.Session, args api.WaitArgs) (leave func()) {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil {
		return func() {}
	}
	stop := box.Await(args.Wants)
	return func() {
		p.Lock()
		defer p.Unlock()
		stop()
	}
}
