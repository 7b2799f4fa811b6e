package broker

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// messages is the part of the broker that stores sent messages and notifies their recipients.
type messages struct {
	*core
	unread mailbox.Unread
}

// send stores a message durably for every recipient before it answers (MSG-04).
func (p *messages) send(ctx context.Context, l *link, args api.SendArgs) (api.SendResult, error) {
	from, err := p.senderOf(ctx, l, args.Caller)
	if inside := p.JobBehind(l); err == nil && inside != "" {
		err = p.jobs.MaySend(inside, args.To)
	}
	if err != nil {
		return api.SendResult{}, err
	}
	if host, _ := remote.SplitName(args.To); host != "" {
		return p.pairMail.send(ctx, from, args)
	}
	return p.store(ctx, from, args, func() ([]session.Recipient, error) { return p.Roster.Resolve(args.To, from.ID) })
}

// sendOwner stores the owner's own message from the page that this process serves. It
// goes to the session with that peer id, or to all if peerID is "". args.To is for the
// history only, because the page has resolved the names.
func (p *messages) sendOwner(ctx context.Context, peerID string, args api.SendArgs) (api.SendResult, error) {
	return p.store(ctx, bridge.OwnerAddress(), args, func() ([]session.Recipient, error) {
		if peerID == "" {
			return p.Roster.Resolve(session.Everyone, bridge.OwnerID)
		}
		recipient, err := p.Roster.ByID(peerID)
		return []session.Recipient{recipient}, err
	})
}

// senderOf returns the sender, from the connection and never from the arguments. If an
// agent started the owner's command line, the sender is that agent's session: no agent
// may speak as the owner (MSG-08).
func (p *messages) senderOf(ctx context.Context, l *link, caller api.Caller) (bridge.Address, error) {
	if l.Conn.Hello().Role == api.RoleOwner {
		s, err := p.Owner(l.Conn)
		if err != nil {
			return bridge.Address{}, err
		}
		if s != nil {
			p.Lock()
			defer p.Unlock()
			return s.Address(), nil
		}
		return bridge.OwnerAddress(), nil
	}
	s, err := p.sessions.callerOf(ctx, l, caller)
	if err != nil {
		return bridge.Address{}, err
	}
	if err := p.activity.noteActivity(ctx, s, "tool send"); err != nil {
		return bridge.Address{}, err
	}
	p.Lock()
	defer p.Unlock()
	return s.Address(), nil
}

// store checks, threads and stores one message, then notifies its recipients. find
// resolves them in the roster.
func (p *messages) store(ctx context.Context, from bridge.Address, args api.SendArgs, find func() ([]session.Recipient, error)) (api.SendResult, error) {
	message, err := p.compose(ctx, from, args)
	if err != nil {
		return api.SendResult{}, err
	}
	if args.Again {
		sent, err := p.opts.DB.SentBefore(ctx, message)
		if err != nil {
			return api.SendResult{}, err
		}
		if len(sent) > 0 {
			return p.sendResult(sent, nil), nil
		}
	}
	p.Lock()
	recipients, resolveErr := find()
	p.Unlock()
	if resolveErr != nil {
		// A retry of a stored message succeeds even if its target has left.
		return p.storedBefore(ctx, message, resolveErr)
	}
	rows := make([]bridge.Message, len(recipients))
	for i, r := range recipients {
		rows[i] = message
		rows[i].Recipient = r.ID
		if err := p.mayWait(ctx, rows[i]); err != nil {
			return p.storedBefore(ctx, message, err)
		}
	}
	stored, isNew, err := p.opts.DB.Append(ctx, rows)
	if err != nil {
		return api.SendResult{}, err
	}
	if isNew {
		p.Exchanges.Sent(stored)
		return p.sendResult(stored, p.arrived(ctx, stored)), nil
	}
	return p.sendResult(stored, nil), nil
}

// compose fills in what the sender left open and sets the hop of a reply (MSG-07). It
// fails with NotFound if reply_to is unknown.
func (p *messages) compose(ctx context.Context, from bridge.Address, args api.SendArgs) (bridge.Message, error) {
	if err := args.Check(); err != nil {
		return bridge.Message{}, err
	}
	message := bridge.Message{
		ID: args.MessageID, From: from, To: args.To, ConversationID: args.ConversationID,
		ReplyTo: args.ReplyTo, Body: args.Body, CreatedAt: p.nowMillis(),
	}
	if message.ID == "" {
		message.ID = newMessageID()
	}
	if args.ReplyTo != "" {
		parent, err := p.opts.DB.Find(ctx, args.ReplyTo)
		if bridge.CodeOf(err) == bridge.NotFound {
			return bridge.Message{}, bridge.Errorf(bridge.NotFound, "reply_to %q names no stored message", args.ReplyTo)
		}
		if err != nil {
			return bridge.Message{}, err
		}
		if from.ID != bridge.OwnerID { // no chain of agents goes through the owner
			message.Hop = min(parent.Hop+1, bridge.HighestMaxHops)
		}
		if message.ConversationID == "" {
			message.ConversationID = mail.Thread(parent.ConversationID)
		}
	}
	if message.ConversationID == "" {
		message.ConversationID = message.ID
	}
	message.ConversationID = args.Reply.Mark(message.ConversationID)
	return message, bridge.CheckID("conversation_id", message.ConversationID)
}

// newMessageID returns an id that sorts by time, so that new rows go to the end of the
// store's indexes.
func newMessageID() string { return uuid.Must(uuid.NewV7()).String() }

// storedBefore answers a retry whose target cannot be resolved any more.
func (p *messages) storedBefore(ctx context.Context, message bridge.Message, resolveErr error) (api.SendResult, error) {
	row, err := p.opts.DB.Find(ctx, message.ID)
	if err != nil || len(row.Deliveries) == 0 {
		return api.SendResult{}, resolveErr
	}
	message.Recipient = row.Deliveries[0].Recipient
	stored, _, err := p.opts.DB.Append(ctx, []bridge.Message{message})
	if err != nil {
		return api.SendResult{}, err
	}
	return p.sendResult(stored, nil), nil
}

// mayWait refuses a message if too much unread mail waits already (SEC-11).
func (p *messages) mayWait(ctx context.Context, m bridge.Message) error {
	p.Lock()
	_, live := p.Roster.Get(m.Recipient)
	name := p.NameLocked(m.Recipient)
	p.Unlock()
	return p.unread.Take(m, name, live, func() (int, error) { return store.UnreadBytes(ctx, p.opts.DB.Reader, m.Recipient, m.From.ID) })
}

// arrival is how a message was announced to its live recipient.
type arrival struct {
	transport mail.Via // the transport of the requested wake, "" for none
	waits     string   // why the session may not be woken yet (QUI-03)
}

// arrived notifies live recipients that mail is durable for them. It returns how, by peer
// id.
func (p *messages) arrived(ctx context.Context, stored []bridge.Message) map[string]arrival {
	var woken []mail.Mark
	arrivals := map[string]arrival{}
	for _, m := range stored {
		p.idleness.CheckPeer(m.Recipient)
	}
	p.Lock()
	for _, m := range stored {
		s, live := p.Roster.Get(m.Recipient)
		if !live {
			continue
		}
		item := arrival{waits: p.Exchanges.WaitsLocked(m, p.nowMillis()), transport: p.announceLocked(s, m)}
		arrivals[m.Recipient] = item
		if item.transport == mail.ViaPlugin {
			woken = append(woken, mail.Mark{MessageID: m.ID, Recipient: m.Recipient, At: p.nowMillis(), Via: mail.ViaPlugin, Evidence: "its plugin was asked to start a turn"})
		}
	}
	p.Unlock()
	p.ledger.Asked(ctx, woken)
	p.changed()
	return arrivals
}

// announceLocked signals one arrival to all that wait for it. It returns the transport of
// the wake that it requested, "" for none.
func (p *messages) announceLocked(s *session.Session, m bridge.Message) (via mail.Via) {
	p.Boxes[s.ID].Signal()
	via = p.Exchanges.WakeNowLocked(s, m, p.nowMillis())
	if via == mail.ViaQueue {
		p.queues.queueWakeLocked(s)
	}
	event := api.MailEvent{Session: s.ID, SessionID: s.SessionID, Wake: via != ""}
	for _, l := range p.Conns {
		if l.Sessions[s.ID] {
			l.Conn.Push(api.EventMail, event)
		}
	}
	return via
}

// sendResult returns the answer to a send. arrivals is empty for a message that was sent
// before.
func (p *messages) sendResult(stored []bridge.Message, arrivals map[string]arrival) api.SendResult {
	result := api.SendResult{ID: stored[0].ID, ConversationID: mail.Thread(stored[0].ConversationID), Recipients: []api.Recipient{}}
	p.Lock()
	defer p.Unlock()
	for _, m := range stored {
		r := api.Recipient{Name: p.NameLocked(m.Recipient)}
		if p.Exchanges.Holds(m) { // also for a recipient that is away
			r.Note = p.Exchanges.WaitsLocked(m, p.nowMillis())
		}
		if s, ok := p.Roster.Get(m.Recipient); ok {
			arrival, isNew := arrivals[m.Recipient]
			if !isNew {
				arrival.transport = p.Exchanges.WakeNowLocked(s, m, p.nowMillis())
			}
			r.Online, r.Wake, r.Note = true, arrival.transport != "", cmp.Or(r.Note, arrival.waits)
		}
		result.Recipients = append(result.Recipients, r)
	}
	slices.SortFunc(result.Recipients, func(x, y api.Recipient) int { return bridge.CompareNames(x.Name, y.Name) })
	return result
}
