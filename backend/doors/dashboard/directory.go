package dashboard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// directory maps names and ids of the live and earlier sessions.
type directory struct {
	maxHops int
	zone    *time.Location
	broker  bool                 // a broker runs
	live    map[string]*api.Peer // by peer id
	known   []store.Peer         // newest first
	byID    map[string]recipient
}

func (s *sources) directory(ctx context.Context, reader Reader, now live) (*directory, error) {
	known, err := reader.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read known sessions: %w", err)
	}
	return s.directoryOf(known, now), nil
}

func (s *sources) directoryOf(known []store.Peer, now live) *directory {
	people := &directory{maxHops: s.maxHops, zone: s.now().Location(), broker: now.on, known: known, live: map[string]*api.Peer{}, byID: map[string]recipient{}}
	for _, peer := range known {
		people.byID[peer.ID] = recipient{name: peer.Name, agent: peer.Agent}
	}
	for i := range now.status.Peers {
		peer := &now.status.Peers[i]
		people.live[peer.ID] = peer
		people.byID[peer.ID] = recipient{name: peer.Name, agent: peer.Agent, live: peer}
	}
	people.byID[bridge.OwnerID] = recipient{name: bridge.OwnerName, agent: bridge.Owner}
	return people
}

// idOf returns the peer id of a session name: the live session's, or else that of
// the last session with the name.
func (p *directory) idOf(name string) (string, bool) {
	for id, peer := range p.live {
		if peer.Name == name {
			return id, true
		}
	}
	for _, peer := range p.known {
		if peer.Name == name {
			return peer.ID, true
		}
	}
	return "", false
}

// lookup returns the known data of a peer id; an unknown peer is named by its id.
func (p *directory) lookup(id string) recipient {
	if known, ok := p.byID[id]; ok {
		return known
	}
	return recipient{name: id}
}

func (p *directory) archive(row mail.HistoryRow) dto.Archived {
	names := make([]string, len(row.Deliveries))
	for i, d := range row.Deliveries {
		names[i] = p.lookup(d.Recipient).name
	}
	wire := dto.Archived{
		ID:         row.ID,
		FromName:   row.From.Name,
		FromAgent:  row.From.Agent,
		ToTarget:   row.To,
		Recipients: strings.Join(names, ", "),
		Body:       row.Body,
		CreatedAt:  row.CreatedAt,
		Hop:        row.Hop,
	}
	if row.ReplyTo != "" {
		wire.ReplyTo = &row.ReplyTo
	}
	return wire
}

func (p *directory) messages(rows []mail.HistoryRow) []dto.Message {
	wires := make([]dto.Message, len(rows))
	for i, row := range rows {
		wires[i] = dto.Message{
			Archived:       p.archive(row),
			ConversationID: mail.Thread(row.ConversationID),
			Kind:           dto.KindOf(row),
			State:          row.Stage(),
			Deliveries:     make([]dto.Delivery, len(row.Deliveries)),
		}
		for j, stored := range row.Deliveries {
			wires[i].Deliveries[j] = deliveryView{
				Delivery:  stored,
				recipient: p.lookup(stored.Recipient),
				maxHops:   p.maxHops,
				broker:    p.broker,
				zone:      p.zone,
			}.wire()
		}
	}
	return wires
}
