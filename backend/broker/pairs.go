package broker

import (
	"context"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// Pairs gives sessions access to the PCs that this PC is paired with.
type Pairs interface {
	// PC returns the paired PC with that name, as a destination for messages. It fails if
	// the PC is not paired or cannot receive them.
	PC(name string) (remote.PC, error)
	// Waiting is called after mail for that PC is stored.
	Waiting(pc string)
	// Keeps returns the identities of the PCs whose mail waits for as long as it may live.
	Keeps() []string
	// Sessions returns the sessions of paired PCs that accept messages.
	Sessions(ctx context.Context) []api.RemoteSession
}

// Share connects the sessions of paired PCs, before the first connection.
func (b *Broker) Share(pairs Pairs) { b.pairs = pairs }

// pairMail is the part of the broker that exchanges mail with sessions of paired PCs.
type pairMail struct{ *core }

// send stores a message to <host>/<session>, and its place in the queue for that PC,
// before it answers (RMT-21).
func (p *pairMail) send(ctx context.Context, from bridge.Address, args api.SendArgs) (api.SendResult, error) {
	host, name := remote.SplitName(args.To)
	if p.pairs == nil {
		return api.SendResult{}, bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")
	}
	message, err := p.messages.compose(ctx, from, args)
	if err == nil {
		message.Recipient = args.To
		err = remote.LetterOf(message).Check()
	}
	if err != nil {
		return api.SendResult{}, err
	}
	if name == session.Everyone {
		return api.SendResult{}, bridge.Errorf(bridge.Invalid, "a message to another PC names one session there, such as %s/api", host)
	}
	if args.Again {
		sent, err := p.opts.DB.SentBefore(ctx, message)
		if err != nil || len(sent) > 0 {
			return p.result(ctx, message, err)
		}
	}
	pc, err := p.pairs.PC(host)
	if err == nil {
		err = p.messages.mayWait(ctx, message)
	}
	if err != nil {
		return api.SendResult{}, err
	}
	_, isNew, err := p.opts.DB.Remote().Append(ctx, message, pc.ID)
	if err != nil || !isNew {
		return p.result(ctx, message, err)
	}
	p.pairs.Waiting(pc.ID) // before the watchers of changes
	p.changed()
	return sentAcross(mail.Delivery{Message: message, Remote: mail.Crossing{Host: host}}), nil
}

// result answers a repeated send from the stored message.
func (p *pairMail) result(ctx context.Context, message bridge.Message, err error) (api.SendResult, error) {
	if err != nil {
		return api.SendResult{}, err
	}
	row, err := p.opts.DB.Find(ctx, message.ID)
	if err != nil || len(row.Deliveries) == 0 {
		return api.SendResult{}, err
	}
	return sentAcross(row.Deliveries[0]), nil
}

// sentAcross returns the answer to the sender of a message to a session of a paired PC.
func sentAcross(d mail.Delivery) api.SendResult {
	_, fact := d.Reached()
	return api.SendResult{ID: d.ID, ConversationID: mail.Thread(d.ConversationID), Recipients: []api.Recipient{{Name: d.Recipient, Note: fact.Evidence}}}
}

// StoreFrom stores letters from a paired PC, in order and in one commit, and notifies
// their sessions. It resolves recipients by this PC's own rules and does not store a
// letter twice. shift is how far that PC's clock is behind. It returns for each letter
// why it is not stored, nil if it is.
func (b *Broker) StoreFrom(ctx context.Context, pc remote.PC, letters []remote.Letter, shift int64) []error {
	failed := make([]error, len(letters))
	var messages []bridge.Message
	var places []int // of messages in letters
	for i, letter := range letters {
		message, err := b.pairMail.accept(ctx, pc, letter, shift)
		if failed[i] = err; err == nil {
			messages, places = append(messages, message), append(places, i)
		}
	}
	added, refused, err := b.opts.DB.Remote().Take(ctx, messages, pc.ID)
	for i, place := range places {
		if failed[place] = err; err == nil {
			failed[place] = refused[i]
		}
	}
	if err == nil && len(added) > 0 {
		b.messages.arrived(ctx, added)
	}
	return failed
}

// accept turns a letter into a message to the session that the letter names.
func (p *pairMail) accept(ctx context.Context, pc remote.PC, letter remote.Letter, shift int64) (bridge.Message, error) {
	hop := 0
	if letter.ReplyTo != "" {
		parent, err := p.opts.DB.Find(ctx, letter.ReplyTo)
		if err != nil && bridge.CodeOf(err) != bridge.NotFound {
			return bridge.Message{}, err
		}
		hop = parent.Hop + 1
	}
	recipient, err := p.find(letter.To)
	message := letter.Message(pc.Name, p.nowMillis(), shift, hop)
	message.Recipient = recipient
	if err == nil {
		err = p.messages.mayWait(ctx, message)
	}
	return message, err
}

// find returns the one session that a letter names. It fails with Denied or Ambiguous.
func (p *pairMail) find(name string) (peerID string, err error) {
	if name == session.Everyone {
		return "", bridge.Errorf(bridge.Denied, "a message from another PC is for one session")
	}
	p.Lock()
	defer p.Unlock()
	found, err := p.Roster.Resolve(name, "")
	switch {
	case err != nil:
		return "", err
	case len(found) != 1:
		return "", bridge.Errorf(bridge.Ambiguous, "%q names %s", name, bridge.Counted(len(found), "session"))
	case job.IsName(found[0].Name):
		return "", bridge.Errorf(bridge.Denied, "%s is a delegated job: it takes messages from its own supervisor only", found[0].Name)
	}
	return found[0].ID, nil
}

// Import stores decisions of a paired PC, each once. With tell, sessions are notified
// once of those that are newest on their topics. Later sessions are caught up (DEC-13).
func (b *Broker) Import(ctx context.Context, pc remote.PC, revisions []decision.Revision, tell bool) (added int, err error) {
	added, err = b.opts.DB.Remote().Import(ctx, revisions, pc.ID)
	if added > 0 {
		b.changed()
	}
	if err != nil || !tell {
		return added, err
	}
	newest, err := b.opts.DB.Remote().Imported(ctx, pc.ID)
	if err != nil {
		return added, err
	}
	if len(newest) > decision.MaxImportedNotices { // more than a session is notified of one by one
		return added, b.decisions.catchUpAll(ctx)
	}
	var news []decision.News
	for _, rev := range slices.Backward(newest) { // oldest first, as they were made
		news = append(news, decision.News{Revision: rev, Newest: true})
	}
	_, err = b.NotifyDecisions(ctx, news)
	return added, err
}

// NotifyDecisions notifies connected sessions of decisions of other PCs, once each. It notifies the
// sessions that know a decision of its withdrawal. notified holds the ids for which there
// was a session.
func (b *Broker) NotifyDecisions(ctx context.Context, news []decision.News) (notified map[string]bool, err error) {
	list, notified, err := b.decisions.notices().OfNews(ctx, news, b.decisions.inScope)
	if err != nil {
		return nil, err
	}
	queued, err := b.opts.DB.NotifyDecisions(ctx, list)
	if err == nil && len(queued) > 0 {
		b.decisions.notify(ctx, queued)
	}
	return notified, err
}
