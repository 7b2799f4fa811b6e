package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/dashboard/shape"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/store"
)

// live is what the broker said at the beginning of a request.
type live struct {
	status api.Status
	on     bool // a broker runs
}

// askBroker asks for the broker's state. Having none is an answer, not an error.
func (d *Dashboard) askBroker(ctx context.Context) (live, error) {
	if d.opts.Broker == nil {
		return live{}, nil
	}
	status, err := d.opts.Broker.Status(ctx)
	if bridge.CodeOf(err) == bridge.Unavailable {
		return live{}, nil
	}
	if err != nil {
		return live{}, fmt.Errorf("ask the broker for its status: %w", err)
	}
	return live{status: status, on: true}, nil
}

// reader returns the store's read side, or one that holds nothing where nothing
// was ever stored.
func (d *Dashboard) reader(ctx context.Context) (Reader, error) {
	reader, err := d.opts.Reader(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return noStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the store to read: %w", err)
	}
	return reader, nil
}

// noStore is the read side of a store that does not exist yet.
type noStore struct{}

func (noStore) Recent(context.Context, int) ([]mail.HistoryRow, error) { return nil, nil }
func (noStore) Conversation(context.Context, string, int64, int) ([]mail.HistoryRow, error) {
	return nil, nil
}

func (noStore) Search(context.Context, string, int64, int) ([]mail.HistoryRow, error) {
	return nil, nil
}

func (noStore) SearchWords(context.Context, store.WordQuery) ([]store.WordHit, int64, error) {
	return nil, 0, nil
}

func (noStore) Find(_ context.Context, id string) (mail.HistoryRow, error) {
	return mail.HistoryRow{}, bridge.Errorf(bridge.NotFound, "no message has the id %s", id)
}

func (noStore) Decisions(context.Context, decision.Lookup) ([]decision.Revision, error) {
	return nil, nil
}

func (noStore) DecisionNotices(context.Context, string) ([]mail.HistoryRow, error) { return nil, nil }

func (noStore) CountSince(context.Context, int64) (int, error) { return 0, nil }

func (noStore) UnreadableDecisions(context.Context) ([]store.UnreadableRow, error) { return nil, nil }

func (noStore) Peers(context.Context) ([]store.Peer, error) { return nil, nil }

// stateKey names one state of the world: a broker that started anew counts its
// revisions anew, a doctor's report is none of its changes, and what the last hour
// brought and what is overdue change by themselves.
type stateKey struct {
	minute   int64
	pid      int
	since    int64
	revision int64
	storage  *checked
}

// stateCache keeps the encoded answer of the last revision. Its lock is held
// while one request builds, so that many at once build one answer.
type stateCache struct {
	mu   sync.Mutex // guards below
	key  stateKey
	body []byte
}

// showState answers GET /api/state.
func (d *Dashboard) showState(w http.ResponseWriter, r *http.Request) error {
	now, err := d.askBroker(r.Context())
	if err != nil {
		return err
	}
	if !now.on {
		state, err := d.buildState(r.Context(), now, d.storage.latest(r.Context()))
		if err != nil {
			return err
		}
		return writeJSON(w, state)
	}
	body, err := d.cachedState(r.Context(), now)
	if err != nil {
		return err
	}
	return writeBody(w, body)
}

func (d *Dashboard) cachedState(ctx context.Context, now live) ([]byte, error) {
	key := stateKey{d.opts.Now().Unix() / 60, now.status.PID, now.status.Since, now.status.Revision, d.storage.latest(ctx)}
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	if d.state.body != nil && d.state.key == key {
		return d.state.body, nil
	}
	state, err := d.buildState(ctx, now, key.storage)
	if err != nil {
		return nil, err
	}
	body, err := encode(state)
	if err != nil {
		return nil, err
	}
	d.state.key, d.state.body = key, body
	return body, nil
}

func (d *Dashboard) buildState(ctx context.Context, now live, looked *checked) (shape.State, error) {
	reader, err := d.reader(ctx)
	if err != nil {
		return shape.State{}, err
	}
	rows, err := reader.Recent(ctx, bridge.RecentMessages)
	if err != nil {
		return shape.State{}, fmt.Errorf("read recent messages: %w", err)
	}
	at := d.opts.Now()
	count, err := reader.CountSince(ctx, at.Add(-time.Hour).UnixMilli())
	if err != nil {
		return shape.State{}, fmt.Errorf("count the last hour's messages: %w", err)
	}
	people, err := d.directory(ctx, reader, now)
	if err != nil {
		return shape.State{}, err
	}
	state := shape.State{
		Revision:  now.status.Revision,
		Instance:  shape.Instance{Name: d.opts.Name, Version: d.opts.Version, Home: d.opts.Home},
		Broker:    shape.Broker{State: "offline"},
		Peers:     shape.Each(now.status.Peers, peerShape),
		Messages:  people.messages(rows),
		Overdue:   people.overdue(mail.FindOverdue(rows, at)),
		LastHour:  shape.LastHour{Messages: count, At: at.UnixMilli()},
		Runs:      []struct{}{},
		Jobs:      map[string]struct{}{},
		Approvals: []struct{}{},
		Storage:   looked.wire(),
	}
	if now.on {
		state.Broker = shape.Broker{State: "live", Host: now.status.Host, PID: &now.status.PID}
	}
	return state, nil
}

func peerShape(p api.Peer) shape.Peer {
	return shape.Peer{
		ID: p.ID, Name: p.Name, Agent: p.Agent, Cwd: p.Cwd, State: p.State, SessionID: p.SessionID, Since: p.Since,
		Children: shape.Each(p.Children, func(c api.Child) shape.Child { return shape.Child{ID: c.ID, Title: c.Title, State: c.State} }),
		AutoWake: p.AutoWake, WakeOnDirect: p.WakeOnDirect, Unread: p.Unread,
		Transport: p.Transport, Wake: p.Wake, Detail: p.Detail, CLI: p.CLI, Problem: p.Problem, Reach: p.Reach,
	}
}

// directory knows who is who: the live sessions and all that were seen before.
type directory struct {
	d      *Dashboard
	broker bool
	live   map[string]*api.Peer // by peer id
	known  []store.Peer         // newest first
	byID   map[string]recipient
}

func (d *Dashboard) directory(ctx context.Context, reader Reader, now live) (*directory, error) {
	known, err := reader.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read known sessions: %w", err)
	}
	people := &directory{d: d, broker: now.on, known: known, live: map[string]*api.Peer{}, byID: map[string]recipient{}}
	for _, peer := range known {
		people.byID[peer.ID] = recipient{name: peer.Name, agent: peer.Agent}
	}
	for i := range now.status.Peers {
		peer := &now.status.Peers[i]
		people.live[peer.ID] = peer
		people.byID[peer.ID] = recipient{name: peer.Name, agent: peer.Agent, live: peer}
	}
	people.byID[bridge.OwnerID] = recipient{name: bridge.OwnerName, agent: bridge.Owner}
	return people, nil
}

// idOf returns the peer id of a session name: the live one's, else that of the
// session that had it last.
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

// who returns what is known of a peer id; a stranger is called by it.
func (p *directory) who(id string) recipient {
	if known, ok := p.byID[id]; ok {
		return known
	}
	return recipient{name: id}
}

func (p *directory) archive(row mail.HistoryRow) shape.Archived {
	names := make([]string, len(row.Deliveries))
	for i, d := range row.Deliveries {
		names[i] = p.who(d.Recipient).name
	}
	wire := shape.Archived{
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

func (p *directory) messages(rows []mail.HistoryRow) []shape.Message {
	wires := make([]shape.Message, len(rows))
	for i, row := range rows {
		wires[i] = shape.Message{
			Archived:       p.archive(row),
			ConversationID: row.ConversationID,
			Kind:           kindOf(row),
			State:          row.Stage(),
			Deliveries:     make([]shape.Delivery, len(row.Deliveries)),
		}
		for j, stored := range row.Deliveries {
			wires[i].Deliveries[j] = delivery{
				Delivery: stored,
				to:       p.who(stored.Recipient),
				maxHops:  p.d.opts.MaxHops,
				broker:   p.broker,
				zone:     p.d.opts.Now().Location(),
			}.wire()
		}
	}
	return wires
}

func (p *directory) overdue(found []mail.Overdue) []shape.Overdue {
	wires := make([]shape.Overdue, len(found))
	for i, o := range found {
		wires[i] = shape.Overdue{ID: o.Recipient, Name: p.who(o.Recipient).name, Messages: o.Messages, Oldest: o.Oldest, Since: o.Since}
	}
	return wires
}

// kindOf tells decisions and the owner's words from ordinary messages.
func kindOf(row mail.HistoryRow) string {
	switch {
	case row.From.Agent == bridge.Owner:
		return "owner"
	case row.IsDecision():
		return "decision"
	default:
		return "message"
	}
}
