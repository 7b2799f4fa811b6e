package broker

import (
	"context"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// sendStatus returns the delivery stages of a message that the session sent, even an
// expired or archived one (MSG-12). It fails with NotFound alike for messages of other
// senders and unknown ids.
func (p *messages) sendStatus(ctx context.Context, l *link, args api.SentArgs) (api.Sent, error) {
	s, err := p.sessions.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.Sent{}, err
	}
	if err := bridge.CheckID("message_id", args.MessageID); err != nil {
		return api.Sent{}, err
	}
	if err := p.activity.noteActivity(ctx, s, "tool send_status"); err != nil {
		return api.Sent{}, err
	}
	row, err := p.opts.DB.Sent(ctx, args.MessageID)
	if err != nil && bridge.CodeOf(err) != bridge.NotFound {
		return api.Sent{}, err
	}
	p.Lock()
	defer p.Unlock()
	if err != nil || !p.sentByLocked(s, row.From.ID) {
		return api.Sent{}, bridge.Errorf(bridge.NotFound, "this session has sent no message with the id %q", args.MessageID)
	}
	answer := api.Sent{ID: row.ID, Recipients: []api.SentStage{}}
	for _, d := range row.Deliveries {
		stage, fact := d.Reached()
		if waits := p.waitsLocked(d); stage == bridge.StageDurable && waits != "" {
			fact.Evidence = waits
		}
		answer.Recipients = append(answer.Recipients, api.SentStage{Name: p.NameLocked(d.Recipient), Stage: stage, At: fact.At, Evidence: fact.Evidence})
	}
	slices.SortFunc(answer.Recipients, func(x, y api.SentStage) int { return bridge.CompareNames(x.Name, y.Name) })
	return answer, nil
}

// waitsLocked returns why a delivery waits or does not wake its recipient yet, "" if neither
// a pause nor the limits of wakes are the reason (QUI-02, QUI-03).
func (p *messages) waitsLocked(d mail.Delivery) string {
	if box := p.Boxes[d.Recipient]; box != nil && box.IsLeased(d.ID) {
		return ""
	}
	return p.Exchanges.WaitsLocked(d.Message, p.nowMillis())
}

// sentByLocked reports whether from is a peer id of s. It may be the present one, one
// from before s was identified, or another one of its host session.
func (p *messages) sentByLocked(s *session.Session, from string) bool {
	now, _ := p.Boxes.Of(from)
	return now == s.ID || p.Roster.SameSession(s, from)
}
