package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// send stores a message durably for every recipient before it answers (MSG-04).
func (b *Broker) send(ctx context.Context, l *link, args api.SendArgs) (api.SendResult, error) {
	from, err := b.senderOf(ctx, l, args.Caller)
	if err != nil {
		return api.SendResult{}, err
	}
	return b.store(ctx, from, args, func() ([]session.Recipient, error) { return b.roster.Resolve(args.To, from.ID) })
}

// SendOwner is the owner's own message, from the page that this process serves,
// to the session with that peer id or, where it is "", to all. What args.To says
// is for the history: the page's names are resolved already.
func (b *Broker) SendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error) {
	return b.store(ctx, bridge.OwnerAddress(), args, func() ([]session.Recipient, error) {
		if peerID == "" {
			return b.roster.Resolve(session.Everyone, bridge.OwnerID)
		}
		to, err := b.roster.ByID(peerID)
		return []session.Recipient{to}, err
	})
}

// senderOf says who writes: it comes from the connection, never from the
// arguments. The owner's command line counts as the session it was started in,
// if an agent did: no agent speaks with the owner's voice (MSG-08).
func (b *Broker) senderOf(ctx context.Context, l *link, caller api.Caller) (bridge.Address, error) {
	if l.conn.Hello().Role == api.RoleOwner {
		if s := b.agentAbove(l.conn.PeerPID()); s != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			return s.Address(), nil
		}
		return bridge.OwnerAddress(), nil
	}
	s, err := b.callerOf(ctx, l, caller)
	if err != nil {
		return bridge.Address{}, err
	}
	if err := b.active(ctx, s, "tool send"); err != nil {
		return bridge.Address{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.Address(), nil
}

// store checks, threads and stores one message, then tells its recipients, whom
// find finds in the roster.
func (b *Broker) store(ctx context.Context, from bridge.Address, args api.SendArgs, find func() ([]session.Recipient, error)) (api.SendResult, error) {
	message, err := b.compose(ctx, from, args)
	if err != nil {
		return api.SendResult{}, err
	}
	if args.Again {
		sent, err := b.opts.DB.SentBefore(ctx, message)
		if err != nil {
			return api.SendResult{}, err
		}
		if len(sent) > 0 {
			return b.sendResult(sent), nil
		}
	}
	b.mu.Lock()
	recipients, resolveErr := find()
	b.mu.Unlock()
	if resolveErr != nil {
		// A retry of a stored message is answered even when its target left.
		return b.storedBefore(ctx, message, resolveErr)
	}
	rows := make([]bridge.Message, len(recipients))
	for i, r := range recipients {
		rows[i] = message
		rows[i].Recipient = r.ID
	}
	stored, fresh, err := b.opts.DB.Append(ctx, rows)
	if err != nil {
		return api.SendResult{}, err
	}
	if fresh {
		b.arrived(ctx, stored)
	}
	return b.sendResult(stored), nil
}

// compose fills in what the sender left open and raises the hop of a reply
// (MSG-07).
func (b *Broker) compose(ctx context.Context, from bridge.Address, args api.SendArgs) (bridge.Message, error) {
	if err := checkSend(args); err != nil {
		return bridge.Message{}, err
	}
	message := bridge.Message{
		ID: args.MessageID, From: from, To: args.To, ConversationID: args.ConversationID,
		ReplyTo: args.ReplyTo, Body: args.Body, CreatedAt: b.nowMillis(),
	}
	if message.ID == "" {
		message.ID = newMessageID()
	}
	if args.ReplyTo != "" {
		parent, err := b.opts.DB.Find(ctx, args.ReplyTo)
		if bridge.CodeOf(err) == bridge.NotFound {
			return bridge.Message{}, bridge.Errorf(bridge.NotFound, "reply_to %q names no stored message", args.ReplyTo)
		}
		if err != nil {
			return bridge.Message{}, err
		}
		message.Hop = min(parent.Hop+1, bridge.HighestMaxHops)
		if message.ConversationID == "" {
			message.ConversationID = parent.ConversationID
		}
	}
	if message.ConversationID == "" {
		message.ConversationID = message.ID
	}
	return message, nil
}

// newMessageID returns an id that sorts by time, so that new rows go to the end
// of the store's indexes.
func newMessageID() string { return uuid.Must(uuid.NewV7()).String() }

func checkSend(args api.SendArgs) error {
	if err := bridge.CheckText("the message", args.Body, bridge.MaxBodyChars); err != nil {
		return err
	}
	if args.To == "" {
		return bridge.Errorf(bridge.Invalid, "the target must not be empty: name a session, or * for all")
	}
	for what, id := range map[string]string{
		"reply_to": args.ReplyTo, "conversation_id": args.ConversationID, "message_id": args.MessageID,
	} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// storedBefore answers a retry whose target cannot be resolved any more.
func (b *Broker) storedBefore(ctx context.Context, message bridge.Message, resolveErr error) (api.SendResult, error) {
	row, err := b.opts.DB.Find(ctx, message.ID)
	if err != nil || len(row.Deliveries) == 0 {
		return api.SendResult{}, resolveErr
	}
	message.Recipient = row.Deliveries[0].Recipient
	stored, _, err := b.opts.DB.Append(ctx, []bridge.Message{message})
	if err != nil {
		return api.SendResult{}, err
	}
	return b.sendResult(stored), nil
}

// arrived tells live recipients that mail is durable for them.
func (b *Broker) arrived(ctx context.Context, stored []bridge.Message) {
	var woken []mail.Mark
	for _, m := range stored {
		b.lookIdleAt(m.Recipient)
	}
	b.mu.Lock()
	for _, m := range stored {
		s, live := b.roster.Get(m.Recipient)
		if live && b.announceLocked(s, m) == mail.ViaPlugin {
			woken = append(woken, mail.Mark{MessageID: m.ID, Recipient: m.Recipient, At: b.nowMillis(), Via: mail.ViaPlugin, Evidence: "its plugin was asked to start a turn"})
		}
	}
	b.mu.Unlock()
	b.noteWoken(ctx, woken)
	b.changed()
}

// announceLocked signals one arrival to whoever waits for it, and returns the way
// of the wake that was asked for, "" where none was.
func (b *Broker) announceLocked(s *session.Session, m bridge.Message) (by mail.Via) {
	b.boxes[s.ID].Signal()
	by = b.wakeLocked(s, m)
	if by == mail.ViaQueue {
		b.queueWakeLocked(s)
	}
	event := api.MailEvent{Session: s.ID, SessionID: s.SessionID, Wake: by != ""}
	for _, l := range b.conns {
		if l.sessions[s.ID] {
			l.conn.Push(api.EventMail, event)
		}
	}
	return by
}

func (b *Broker) sendResult(stored []bridge.Message) api.SendResult {
	result := api.SendResult{ID: stored[0].ID, ConversationID: stored[0].ConversationID, Recipients: []api.Recipient{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range stored {
		r := api.Recipient{Name: b.nameLocked(m.Recipient)}
		if s, ok := b.roster.Get(m.Recipient); ok {
			r.Online, r.Wake = true, b.wakeLocked(s, m) != ""
		}
		result.Recipients = append(result.Recipients, r)
	}
	slices.SortFunc(result.Recipients, func(x, y api.Recipient) int { return bridge.CompareNames(x.Name, y.Name) })
	return result
}

// nameLocked is the name of a peer id, or the id itself when nobody had it: old
// stores hold names there.
func (b *Broker) nameLocked(id string) string {
	if known, ok := b.roster.Known(id); ok {
		return known.Name
	}
	return id
}

// inboxLimit and inboxMost bound one answer of the tool inbox.
const (
	inboxLimit = 20
	inboxMost  = 100
	// inboxChars bounds the bodies of one answer, so that it fits a frame.
	inboxChars = 400_000
)

// inbox takes unread mail for a tool call (MSG-06).
func (b *Broker) inbox(ctx context.Context, l *link, args api.InboxArgs) (api.Inbox, error) {
	s, err := b.reader(ctx, l, args.Caller, "tool inbox")
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
	var shown []mail.Delivery
	loan, _, err := b.lend(ctx, l, s, inboxMost, mail.InOrder, func(free []mail.Delivery) mail.Presentation {
		shown = mail.Fitting(free[:min(len(free), limit)], inboxChars)
		if !args.MarkRead {
			return mail.Presentation{}
		}
		return mail.Presentation{Shown: shown}
	})
	if err != nil {
		return api.Inbox{}, err
	}
	remaining, err := b.waiting(ctx, s)
	if err != nil {
		return api.Inbox{}, err
	}
	if loan == nil {
		remaining = max(0, remaining-len(shown)) // shown, but left unread
	}
	answer := api.Inbox{Messages: []api.InboxMessage{}, Remaining: remaining, Loan: loan}
	for _, d := range shown {
		answer.Messages = append(answer.Messages, inboxMessage(d.Message))
	}
	return answer, nil
}

// waiting counts the unread mail of a session that nobody was given yet.
func (b *Broker) waiting(ctx context.Context, s *session.Session) (int, error) {
	b.mu.Lock()
	id, lent := s.ID, 0
	if box := b.boxes[s.ID]; box != nil {
		lent = box.Leased()
	}
	b.mu.Unlock()
	unread, err := b.opts.DB.UnreadCount(ctx, id)
	return max(0, unread-lent), err
}

// reader finds the session that wants its mail. A native child has no inbox of
// its own and must not take its parent's.
func (b *Broker) reader(ctx context.Context, l *link, caller api.Caller, evidence string) (*session.Session, error) {
	s, err := b.callerOf(ctx, l, caller)
	if err != nil {
		return nil, err
	}
	if b.isChild(caller) {
		return nil, bridge.Errorf(bridge.Denied, "a native child has no inbox of its own: its parent session reads the mail")
	}
	return s, b.active(ctx, s, evidence)
}

// isChild reports whether a call came from inside a native child, by its own
// word or because a hook saw it there.
func (b *Broker) isChild(caller api.Caller) bool {
	if caller.ChildID != "" {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.childCalls[caller.ToolUseID]
}

func inboxMessage(m bridge.Message) api.InboxMessage {
	shown := api.InboxMessage{
		ID: m.ID, From: m.From, To: m.To, ConversationID: m.ConversationID, Hop: m.Hop, Body: m.Body, CreatedAt: m.CreatedAt,
	}
	if m.ReplyTo != "" {
		shown.ReplyTo = &m.ReplyTo
	}
	return shown
}

// wait waits for one unread message that fits the filters, at most 110 s.
func (b *Broker) wait(ctx context.Context, l *link, args api.WaitArgs) (api.WaitResult, error) {
	s, err := b.reader(ctx, l, args.Caller, "tool wait_for_message")
	if err != nil {
		return api.WaitResult{}, err
	}
	if err := b.checkWords([]string{args.From}); err != nil {
		return api.WaitResult{}, err
	}
	timeout := time.Duration(args.TimeoutMillis) * time.Millisecond
	if timeout < time.Millisecond || timeout > bridge.MaxWait {
		return api.WaitResult{}, bridge.Errorf(bridge.Invalid, "the time-out must be above 0 and at most %d s", int(bridge.MaxWait.Seconds()))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		arrived, ok := b.arrivals(s)
		if !ok {
			return api.WaitResult{}, bridge.Errorf(bridge.Unavailable, "the session has left")
		}
		loan, taken, err := b.lend(ctx, l, s, 1, asked(args), firstFit(args))
		if len(taken.Shown) > 0 {
			message := inboxMessage(taken.Shown[0].Message)
			return api.WaitResult{Message: &message, Loan: loan}, nil
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

// arrivals is closed at the next arrival for s; asked for before looking, it
// misses none.
func (b *Broker) arrivals(s *session.Session) (<-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[s.ID]
	if box == nil {
		return nil, false
	}
	return box.Arrived(), true
}

// asked tells which messages a wait asks for.
func asked(args api.WaitArgs) mail.Priority {
	return func(d mail.Delivery) bool {
		return (args.From == "" || args.From == d.From.Name || args.From == d.From.ID) &&
			(args.ReplyTo == "" || args.ReplyTo == d.ReplyTo) &&
			(args.ConversationID == "" || args.ConversationID == d.ConversationID)
	}
}

// firstFit chooses the oldest message that a wait asks for.
func firstFit(args api.WaitArgs) func([]mail.Delivery) mail.Presentation {
	return func(free []mail.Delivery) mail.Presentation {
		at := slices.IndexFunc(free, asked(args))
		if at < 0 {
			return mail.Presentation{}
		}
		return mail.Presentation{Shown: free[at : at+1]}
	}
}
