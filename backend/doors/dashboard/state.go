package dashboard

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/needs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/doors/dashboard/needsview"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/doors/dashboard/storage"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// stateKey identifies one state. A restarted broker restarts its revisions. A
// doctor's report is not one of its changes. The last hour's count and the overdue
// items change with time.
type stateKey struct {
	minute   int64
	pid      int
	since    int64
	revision int64
	storage  *storage.Checked
}

// stateCache caches the state of the last revision, and its encoded answers. A request
// holds its lock while it builds, so that concurrent requests build one answer.
type stateCache struct {
	mu     sync.Mutex // guards below
	key    stateKey
	valid  bool
	past   history
	bodies map[string][]byte // by the tag that a page asks the changes since; "" for the whole state
	facts  needs.Facts
}

// states serves the current state in one answer.
type states struct {
	*sources
	instance dto.Instance
	runs     *runs.Runs
	storage  *storage.Reports
	queue    *needsview.Queue
	settings *settings
	began    int64 // start of this dashboard, Unix milliseconds
	cache    stateCache
	hour     hourCount
	badSince atomic.Int64 // since when parts of the store cannot be read, Unix milliseconds; 0 if all can be
}

// hourCount counts the messages of the last hour. Counting reads each of them,
// which would cost more than the rest of the state if there are many. So a count n
// above exactCount is valid for n milliseconds, in which few messages arrive.
type hourCount struct {
	mu   sync.Mutex // guards last
	last dto.LastHour
}

// exactCount is the count up to which each state counts again.
const exactCount = 1000

func (h *hourCount) at(now time.Time, count func(since int64) (int, error)) (dto.LastHour, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := now.UnixMilli() - h.last.At
	if h.last.Messages > exactCount && age >= 0 && age < int64(h.last.Messages) {
		return h.last, nil
	}
	messages, err := count(now.Add(-time.Hour).UnixMilli())
	if err != nil {
		return dto.LastHour{Messages: bridge.UnknownCount, At: now.UnixMilli()}, err
	}
	h.last = dto.LastHour{Messages: bridge.Count(messages), At: now.UnixMilli()}
	return h.last, nil
}

// show answers GET /api/state.
func (s *states) show(w http.ResponseWriter, r *http.Request) error {
	now, err := s.askBroker(r.Context())
	if err != nil {
		return err
	}
	if !now.on {
		state, _, err := s.build(r.Context(), now, s.storage.Latest(r.Context()))
		if err != nil {
			return err
		}
		return httpjson.WriteJSON(w, state)
	}
	params, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	body, err := s.encoded(r.Context(), now, params.Get("since"))
	if err != nil {
		return err
	}
	return httpjson.WriteBody(w, body)
}

// facts returns the facts for the owner's needs.
func (s *states) facts(ctx context.Context) (facts needs.Facts, err error) {
	now, err := s.askBroker(ctx)
	if err != nil {
		return needs.Facts{}, err
	}
	if now.on {
		facts, err = s.cachedFacts(ctx, now)
	} else {
		_, facts, err = s.build(ctx, now, s.storage.Latest(ctx))
	}
	return facts, err
}

func (s *states) cachedFacts(ctx context.Context, now live) (needs.Facts, error) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if err := s.renew(ctx, now); err != nil {
		return needs.Facts{}, err
	}
	return s.cache.facts, nil
}

// encoded returns the current state as JSON: as changes of the state with that tag, or
// whole if that one is not known any more.
func (s *states) encoded(ctx context.Context, now live, since string) (body []byte, err error) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if err := s.renew(ctx, now); err != nil {
		return nil, err
	}
	changes, ok := s.cache.past.since(since)
	if !ok {
		since = ""
	}
	if body, ok := s.cache.bodies[since]; ok {
		return body, nil
	}
	if ok {
		body, err = httpjson.Encode(changes)
	} else {
		body, err = httpjson.Encode(s.cache.past.newest())
	}
	if err != nil {
		return nil, err
	}
	s.cache.bodies[since] = body
	return body, nil
}

// renew builds the state if something changed. The caller holds the cache's lock.
func (s *states) renew(ctx context.Context, now live) error {
	key := stateKey{s.now().Unix() / 60, now.status.PID, now.status.Since, now.status.Revision, s.storage.Latest(ctx)}
	if s.cache.valid && s.cache.key == key {
		return nil
	}
	state, facts, err := s.build(ctx, now, key.storage)
	if err != nil {
		return err
	}
	s.cache.past.add(s.began, state)
	s.cache.key, s.cache.valid, s.cache.facts, s.cache.bodies = key, true, facts, map[string][]byte{}
	return nil
}

func (s *states) build(ctx context.Context, now live, looked *storage.Checked) (dto.State, needs.Facts, error) {
	reader, err := s.reader(ctx)
	if err != nil {
		return dto.State{}, needs.Facts{}, err
	}
	at, unreadable := s.now(), unreadable{sentences: slices.Clone(now.status.Unreadable)}
	rows := readPart(&unreadable, "The newest messages cannot be read", func() ([]mail.HistoryRow, error) { return reader.Recent(ctx, bridge.RecentMessages) })
	hour := readPart(&unreadable, "The last hour's messages cannot be counted", func() (dto.LastHour, error) {
		return s.hour.at(at, func(since int64) (int, error) { return reader.CountSince(ctx, since) })
	})
	people := s.directoryOf(readPart(&unreadable, "The earlier sessions cannot be read", func() ([]store.Peer, error) { return reader.Peers(ctx) }), now)
	exchanged := readPart(&unreadable, "The mail of paused sessions cannot be counted", func() ([]needs.ExchangeFact, error) { return s.queue.Exchanged(ctx) })
	if unreadable.err != nil {
		return dto.State{}, needs.Facts{}, unreadable.err
	}
	state := dto.State{
		Revision: now.status.Revision,
		Instance: s.instance,
		Broker:   dto.Broker{State: "offline"},
		Peers:    dto.Each(now.status.Peers, peerShape),
		Messages: people.messages(rows),
		LastHour: hour,
		Storage:  looked.Sum(unreadable.sentences),

		Unreadable: unreadable.sentences,
	}
	facts := needs.Facts{
		Mail: people.unread(mail.FindOverdue(s.queue.Overdue(rows), at)), Expired: people.expired(rows),
		PutAway: s.queue.PutAway(), Questions: s.queue.Asked(), Exchanges: exchanged,
		Proofs: now.status.Proofs,
	}
	looked.Into(&facts, s.instance.Home)
	looked.AddUnreadable(&facts, unreadable.sentences, s.unreadableSince(unreadable, at))
	s.runs.Into(&state, &facts)
	if now.on {
		state.Broker = dto.Broker{State: "live", Host: now.status.Host, PID: &now.status.PID}
	} else {
		facts.NoBroker = s.began
	}
	state.Needs = needs.List(facts, at)
	state.NoticesFrom = s.settings.noticesFrom(state.Broker.Host, at)
	return state, facts, nil
}

func peerShape(p api.Peer) dto.Peer {
	return dto.Peer{
		ID: p.ID, Name: p.Name, Agent: p.Agent, Cwd: p.Cwd, State: p.State, SessionID: p.SessionID, Since: p.Since, UnknownSince: p.UnknownSince,
		Children: dto.Each(p.Children, func(c api.Child) dto.Child { return dto.Child{ID: c.ID, Title: c.Title, State: c.State} }),
		AutoWake: p.AutoWake, WakeOnDirect: p.WakeOnDirect, Unread: p.Unread,
		Transport: p.Transport, Wake: p.Wake, Detail: p.Detail, CLI: p.CLI, Problem: p.Problem, Reach: p.Reach,
	}
}
