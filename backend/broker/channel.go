package broker

import (
	"context"
	"slices"

	"bridge/backend/core/mail"
	"bridge/backend/platform/ipc/api"
)

// channels is the part of the broker that gives mail to claude's channels (bridge.HookWaker).
type channels struct{ *core }

// take leases the mail to push into a session's channel (CHT-03). A push has no answer,
// so take treats it as a wake. The next signs of an idle session show whether the channel
// displayed it. A session at work uses its hooks.
func (p *channels) take(ctx context.Context, l *link, caller api.Caller) (api.Inbox, error) {
	s, err := p.sessions.callerOf(ctx, l, caller)
	if err != nil {
		return api.Inbox{}, err
	}
	answer := api.Inbox{Messages: []api.InboxMessage{}}
	mayWake, woke := p.leases.mayWake(s), int64(0)
	answer.Lease, _, err = p.leases.lease(ctx, l, s, hookScan, p.leases.mayWakeNow(s), func(free []mail.Delivery) mail.Presentation {
		due := mayWake.And(p.Boxes.Due(s, p.nowMillis()))
		short := slices.DeleteFunc(p.Boxes[s.ID].Unawaited(free), func(d mail.Delivery) bool { return len(d.Body) > api.MaxChannelBodyBytes })
		if s.Busy || !s.Channel || !slices.ContainsFunc(short, due) {
			return mail.Presentation{}
		}
		slices.SortStableFunc(short, due.Compare)
		fit := mail.Fitting(short[:min(len(short), inboxLimit)], inboxChars)
		for _, d := range fit {
			answer.Messages = append(answer.Messages, api.InboxMessageOf(d.Message))
		}
		p.Boxes[s.ID].Hooks.Push(mail.IDs(fit), p.nowMillis())
		woke = p.wakes.wokeLocked(s, fit, mayWake)
		return mail.Presentation{Shown: fit}
	})
	if err != nil || answer.Lease == nil {
		return api.Inbox{Messages: []api.InboxMessage{}}, err
	}
	p.wakes.watchWake(s, answer.Lease.Messages, woke)
	return answer, nil
}
