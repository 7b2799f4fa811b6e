// Package notices determines of which decisions sessions must be notified, and composes
// the messages (DEC-10, DEC-13). It stores nothing and sends nothing.
package notices

import (
	"context"
	"errors"
	"slices"

	"bridge/backend/core/decision"
	"bridge/backend/storage/store"
)

// Maker composes notices. All fields are required.
type Maker struct {
	DB    *store.DB
	NewID func() string // of a message
	Now   func() int64  // Unix milliseconds
}

// Missing returns the notices that a joining session lacks. They cover the applicable
// current decisions that it was not notified of (DEC-13). Each carries a decision of this
// PC's owner from the same time, if any (HUB-06). They also cover withdrawals of known
// decisions.
func (m Maker) Missing(ctx context.Context, target decision.Target) ([]decision.Notification, error) {
	history, err := m.DB.Decisions(ctx, decision.Lookup{History: true})
	if err != nil {
		return nil, err
	}
	receipts, err := m.DB.Delivered(ctx, target.SessionKey())
	if err != nil {
		return nil, err
	}
	news, rest := decision.CatchUp(history, receipts, target)
	if slices.ContainsFunc(news, func(n decision.News) bool { return decision.OrderedRevision{Revision: n.Revision}.IsImported() }) {
		beside, err := m.DB.Remote().ConcurrentOwn(ctx)
		if err != nil {
			return nil, err
		}
		for i := range news {
			news[i].Beside = beside[news[i].ID]
		}
	}
	var missing []decision.Notification
	for _, notice := range news {
		missing = append(missing, notice.Notifications(m.NewID(), m.Now(), []decision.Target{target})...)
	}
	return append(missing, decision.WithoutMessage(rest, target.SessionKey(), m.Now())...), nil
}

// OfNews returns the notices of other PCs' decisions for the connected sessions, which
// inScope returns. A withdrawal goes to the sessions that know the decision. notified holds
// the decisions for which there was a session.
func (m Maker) OfNews(ctx context.Context, news []decision.News, inScope func(decision.Scope) []decision.Target) (notices []decision.Notification, notified map[string]bool, err error) {
	notified = map[string]bool{}
	for _, notice := range news {
		targets := inScope(notice.Scope)
		if notice.Withdrawn && notice.Newest {
			if targets, err = m.unaware(ctx, notice.Topic, targets); err != nil {
				return nil, nil, err
			}
		}
		list := notice.Notifications(m.NewID(), m.Now(), targets)
		notices, notified[notice.ID] = append(notices, list...), len(list) > 0
	}
	return notices, notified, nil
}

// unaware returns the sessions that must be notified that the decision on a topic is
// withdrawn.
func (m Maker) unaware(ctx context.Context, topic string, targets []decision.Target) (unaware []decision.Target, err error) {
	history, err := m.DB.Decisions(ctx, decision.Lookup{Topic: topic, History: true})
	for _, target := range targets {
		receipts, toldErr := m.DB.Delivered(ctx, target.SessionKey())
		if err = errors.Join(err, toldErr); err == nil && decision.MissedWithdrawal(history, receipts, target) {
			unaware = append(unaware, target)
		}
	}
	return unaware, err
}
