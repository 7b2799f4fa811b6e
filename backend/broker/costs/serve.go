package costs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// Service counts for the sessions of a broker. All fields are required.
type Service struct {
	*Counter
	Presence *presence.Presence
	DB       *store.DB
}

// Register serves api.OpCostReport and api.OpCosts.
func (s Service) Register(m *mux.Mux) {
	mux.HandleLink(m, api.OpCostReport, s.report)
	mux.HandleLink(m, api.OpCosts, func(context.Context, *presence.Link, api.Empty) (api.Costs, error) { return s.Costs(), nil })
}

// report counts what a process put into its sessions. It fails with Unavailable if the
// connection has no session yet: the process reports again when it has one.
func (s Service) report(_ context.Context, l *presence.Link, report api.CostReport) (api.Empty, error) {
	if err := report.Check(); err != nil {
		return api.Empty{}, err
	}
	for _, cost := range report.Costs {
		sessionID := s.sessionOf(l, report.Agent, cost.SessionID)
		switch {
		case sessionID == "":
			return api.Empty{}, bridge.Errorf(bridge.Unavailable, "the connection has no session yet")
		case report.Reporter == "":
			s.Add(sessionID, cost.Cost)
		default:
			s.Report(sessionID, report.Reporter+"/"+cost.SessionID, cost.Cost)
		}
	}
	return api.Empty{}, nil
}

// sessionOf returns the name under which a process's session is counted, "" if it has none.
func (s Service) sessionOf(l *presence.Link, kind bridge.AgentKind, hostID string) string {
	s.Presence.Lock()
	defer s.Presence.Unlock()
	if l.Identity != nil {
		kind = l.Identity.Kind
	}
	if hostID != "" && l.Job == "" {
		if live, ok := s.Presence.Roster.ByHost(kind, hostID); ok {
			return live.ID
		}
		return Unknown(kind, hostID)
	}
	ids := make([]string, 0, len(l.Sessions))
	for id := range l.Sessions {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return ""
	}
	return slices.Min(ids) // of several sessions of one server, the tools count for one
}

// Unknown returns the name under which a session is counted until it registers.
func Unknown(kind bridge.AgentKind, hostID string) string { return string(kind) + ":" + hostID }

// Identified moves what was counted under other names of a session to its peer id.
func (s Service) Identified(kind bridge.AgentKind, hostID, id string, former []string) {
	for _, old := range former {
		s.Move(old, id)
	}
	if hostID != "" {
		s.Move(Unknown(kind, hostID), id)
	}
}

// Handed returns the function that counts the text of a lease, once its handover is
// recorded. Afterwards nothing shows that the text is not counted yet.
func (s Service) Handed(ctx context.Context, lease session.Lease, via mail.Via) (spend func()) {
	s.Presence.Lock()
	id, box := s.Presence.Boxes.Of(lease.Recipient)
	var cost session.Cost
	known := false
	if box != nil {
		cost, known = box.TakeCost(lease.ID)
	}
	s.Presence.Unlock()
	id = cmp.Or(id, lease.Recipient)
	if !known {
		cost = s.rebuilt(ctx, id, via, lease.Messages)
	}
	return func() { s.Add(id, cost) }
}

// Journaled is Handed for acks that the read journal kept, each of one message.
func (s Service) Journaled(ctx context.Context, marks []mail.Mark) (spend func()) {
	spends := map[string]func(){}
	for _, mark := range marks {
		spends[mark.Recipient+"/"+mark.MessageID] = s.Handed(ctx, session.Lease{Recipient: mark.Recipient, Messages: []string{mark.MessageID}}, mark.Via)
	}
	return func() {
		for _, spend := range spends {
			spend()
		}
	}
}

// Dropped returns the function that removes mail from the counts that a wake gave to the
// session's host, once it is unread again: the host did not show it. The size is that of
// each message by itself.
func (s Service) Dropped(ctx context.Context, id string, messages []string) (takeBack func()) {
	var cost session.Cost
	for _, message := range messages {
		cost = cost.Plus(s.sizeOf(ctx, id, message, func(d mail.Delivery) bool { return d.Handed.Via.IsWake() }))
	}
	return func() { s.Subtract(id, cost) }
}

// rebuilt returns the size of the texts with these messages, as a hook shows them. It leaves
// out those that were handed over already. It is for texts of which this broker does not
// know the size: an earlier broker gave them, or the read journal kept their acks.
func (s Service) rebuilt(ctx context.Context, id string, via mail.Via, messages []string) (cost session.Cost) {
	if via != mail.ViaHook && via != mail.ViaWakeHook && via != mail.ViaPlugin {
		return cost // the MCP server reports its own
	}
	for _, message := range messages {
		cost = cost.Plus(s.sizeOf(ctx, id, message, func(d mail.Delivery) bool { return !d.Handed.Happened() && !d.Consumed.Happened() }))
	}
	return cost
}

// sizeOf returns the size of one message as a hook shows it, zero if counts refuses it.
func (s Service) sizeOf(ctx context.Context, id, message string, counts func(mail.Delivery) bool) session.Cost {
	found, err := s.DB.Find(ctx, message)
	if err != nil {
		return session.Cost{}
	}
	for _, d := range found.Deliveries {
		if d.Recipient == id && counts(d) {
			d.Message = bridge.Message{
				ID: found.ID, From: found.From, To: found.To, ConversationID: found.ConversationID, ReplyTo: found.ReplyTo,
				Hop: found.Hop, Body: found.Body, CreatedAt: found.CreatedAt, Recipient: id,
			}
			return mail.Present([]mail.Delivery{d}, func(mail.Delivery) bool { return true }).Cost()
		}
	}
	return session.Cost{}
}

// Costs returns what Bridge put into each session, in tokens. A session that has never
// registered is left out.
func (s Service) Costs() api.Costs {
	bytes := map[string]session.Cost{}
	found := map[string]*api.SessionCost{}
	for _, day := range s.Days() {
		cost := found[day.Session]
		if cost == nil {
			cost = &api.SessionCost{ID: day.Session}
			found[day.Session] = cost
		}
		bytes[day.Session] = bytes[day.Session].Plus(day.Cost)
		cost.Days = append(cost.Days, api.DayTokens{Day: day.Day, Cost: day.Tokens()})
	}
	answer := api.Costs{BytesPerToken: session.BytesPerToken, KeptDays: KeptDays, Sessions: []api.SessionCost{}}
	s.Presence.Lock()
	defer s.Presence.Unlock()
	for id, cost := range found {
		if known, ok := s.Presence.Roster.Known(id); ok {
			cost.Name, cost.Agent, cost.Total = known.Name, known.Kind, bytes[id].Tokens()
			answer.Sessions = append(answer.Sessions, *cost)
		}
	}
	slices.SortFunc(answer.Sessions, func(x, y api.SessionCost) int {
		return cmp.Or(cmp.Compare(y.Total.Total(), x.Total.Total()), strings.Compare(x.Name, y.Name), strings.Compare(x.ID, y.ID))
	})
	return answer
}
