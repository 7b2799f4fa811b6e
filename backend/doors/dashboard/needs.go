package dashboard

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/needs"
)

// Needs returns the facts for the list of the owner's needs, for other views of it
// (NED-01). It fails if they cannot be read.
func (d *Dashboard) Needs(ctx context.Context) (needs.Facts, error) { return d.states.facts(ctx) }

// forget invalidates the cached state and notifies every view.
func (s *states) forget() {
	s.cache.mu.Lock()
	s.cache.valid = false
	s.cache.mu.Unlock()
	if s.broker != nil {
		s.broker.Changed()
	}
}

// unread returns the overdue mail by recipient.
func (p *directory) unread(found []mail.Overdue) []needs.MailFact {
	facts := make([]needs.MailFact, len(found))
	for i, o := range found {
		recipient := p.lookup(o.Recipient)
		facts[i] = needs.MailFact{Session: recipient.name, Messages: o.Messages, Oldest: o.Oldest, Since: o.Since}
		if recipient.live != nil {
			facts[i].State, facts[i].Folder = recipient.live.State, recipient.live.Cwd
		}
	}
	return facts
}

// expired returns the messages that were never read.
func (p *directory) expired(rows []mail.HistoryRow) (facts []needs.ExpiredFact) {
	for _, row := range rows {
		for _, d := range row.Deliveries {
			if d.Stage() != bridge.StageExpired {
				continue
			}
			recipient := p.lookup(d.Recipient)
			facts = append(facts, needs.ExpiredFact{
				Message: row.ID, Recipient: d.Recipient, From: row.From.Name, To: recipient.name, At: d.Expired.At,
				Note: deliveryView{Delivery: d, recipient: recipient, maxHops: p.maxHops, broker: p.broker, zone: p.zone}.note(),
			})
		}
	}
	return facts
}
