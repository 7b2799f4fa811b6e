package codexthreads

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"bridge/backend/agent/appserver"
	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
)

// answerTime is the timeout of our other requests to codex.
const answerTime = 10 * time.Second

// server is one background server while prompts of its threads are wanted. It is the
// holder of their cards.
type server struct {
	opts   Options
	leave  context.CancelFunc
	ended  chan struct{}
	client codex          // nil until connected
	asking sync.WaitGroup // goroutines that wait for the owner or for codex

	mu      sync.Mutex      // guards the fields below, and the order of an answer and the reports on it
	ctx     context.Context //nolint:containedctx // the connection's own life
	closed  bool            // no new work begins
	known   map[string]bool // the threads that are sessions of Bridge
	threads map[string]*thread
}

// codex is the connection to the server; *appserver.Client implements it.
type codex interface {
	// Request sends a request; a *run.Refusal is the server's own refusal.
	Request(ctx context.Context, method string, params any) (json.RawMessage, error)
	// Answer answers a request of the server. The answer cannot be revoked.
	Answer(ctx context.Context, id json.RawMessage, result any) error
}

// thread is one of the server's threads.
type thread struct {
	waits      bool // it waits for a person
	subscribed bool // we receive its notifications
	asks       map[string]*ask
	changes    map[string]appserver.Item // begun file changes, by item
}

// waitingFlags are the flags of a thread that waits for a person.
var waitingFlags = []string{"waitingOnApproval", "waitingOnUserInput"}

// mutes are frequent notifications of busy threads that this package does not use.
var mutes = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded", "item/reasoning/textDelta",
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "item/fileChange/patchUpdated", "command/exec/outputDelta", "process/outputDelta",
	"hook/started", "hook/completed", "thread/started", "thread/name/updated", "thread/goal/cleared", "turn/diff/updated", "turn/plan/updated", "thread/tokenUsage/updated", "account/rateLimits/updated", "rawResponseItem/completed",
}

// note has the fields of notifications that this package reads.
type note struct {
	Thread  string          `json:"threadId"`
	Status  status          `json:"status"`
	Request json.RawMessage `json:"requestId"`
	Item    appserver.Item  `json:"item"`
	Turn    struct {
		Status string `json:"status"`
	} `json:"turn"`
}

type status struct {
	Type  string   `json:"type"`
	Flags []string `json:"activeFlags"`
}

func (s status) waits() bool {
	return slices.ContainsFunc(s.Flags, func(flag string) bool { return slices.Contains(waitingFlags, flag) })
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// serve is a client of the server until ctx or the connection ends.
func (s *server) serve(ctx context.Context, socket string) error {
	client, err := appserver.Dial(ctx, socket)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.client, s.ctx = client, ctx
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, client.Close)
	defer stop()
	opened := make(chan error, 1)
	s.asking.Go(func() { opened <- s.open(ctx, client) })
	client.Serve(s.take)
	s.leave()
	client.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.opts.Desk.Release(s) // no one delivers answers any more
	s.asking.Wait()
	s.opts.Desk.Release(s) // the requests that were about to become cards
	return <-opened
}

// open starts the protocol and reads the threads that may already wait.
func (s *server) open(ctx context.Context, client *appserver.Client) error {
	opening, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := client.Open(opening, mutes...); err != nil {
		client.Close()
		return err
	}
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	for id := range known {
		s.read(ctx, id)
	}
	return nil
}

// read requests the status of a thread.
func (s *server) read(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	raw, err := s.client.Request(ctx, "thread/read", map[string]any{"threadId": id, "includeTurns": false})
	status, known := statusIn(raw)
	if err != nil || !known {
		return // the thread has had no turn yet, so it has no prompt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setStatusLocked(id, status)
}

// look updates which threads are sessions and whether their prompts are shown. If they
// are not, it disconnects once no card is open.
func (s *server) look(known map[string]bool, showsCards bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
	if s.client == nil || s.closed {
		return // still connecting, or ended
	}
	if len(known) == 0 || !showsCards && !s.holdsLocked() {
		s.leave()
		return
	}
	if !showsCards {
		return
	}
	for id, t := range s.threads {
		s.subscribeLocked(id, t)
		for _, ask := range t.asks {
			s.holdLocked(ask)
		}
	}
}

// holdsLocked reports whether a card is open or its outcome unknown.
func (s *server) holdsLocked() bool {
	for _, t := range s.threads {
		for _, ask := range t.asks {
			if ask.prompt != "" {
				return true
			}
		}
	}
	return false
}

func (s *server) threadLocked(id string) *thread {
	t := s.threads[id]
	if t == nil {
		t = &thread{asks: map[string]*ask{}, changes: map[string]appserver.Item{}}
		s.threads[id] = t
	}
	return t
}

// take handles the messages of the server in order. It never answers requests that are
// not for the owner: other clients do.
func (s *server) take(line appserver.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line.ID != nil {
		s.askedLocked(line)
		return
	}
	var notification note
	if json.Unmarshal(line.Params, &notification) != nil || notification.Thread == "" {
		return
	}
	switch line.Method {
	case "thread/status/changed":
		s.setStatusLocked(notification.Thread, notification.Status)
	case "serverRequest/resolved":
		s.resolvedLocked(notification.Thread, string(notification.Request))
	case "item/started":
		if notification.Item.Type == "fileChange" {
			s.threadLocked(notification.Thread).changes[notification.Item.ID] = notification.Item
		}
	case "item/completed":
		s.completedLocked(notification.Thread, notification.Item)
	case "turn/completed":
		sign := prompt.WentOn
		if notification.Turn.Status == "interrupted" {
			sign = prompt.Stopped
		}
		s.leaveLocked(notification.Thread, sign)
	case "thread/closed":
		s.leaveLocked(notification.Thread, prompt.Gone)
	}
}

// setStatusLocked records the status of a thread. Subscribers receive the end of its turn
// after that.
func (s *server) setStatusLocked(id string, status status) {
	t := s.threadLocked(id)
	t.waits = status.waits()
	if status.Type == "active" {
		s.subscribeLocked(id, t)
	} else if !t.subscribed {
		s.leaveLocked(id, prompt.WentOn)
	}
}

// leaveLocked ends a thread's requests and unsubscribes from it, because a subscriber
// keeps the thread in memory.
func (s *server) leaveLocked(id string, sign prompt.Sign) {
	t := s.threadLocked(id)
	s.endedLocked(id, sign)
	delete(s.threads, id)
	if t.subscribed {
		s.sendAsync(func(ctx context.Context) {
			_, _ = s.client.Request(ctx, "thread/unsubscribe", map[string]any{"threadId": id}) // the end of the connection does it too
		})
	}
}

// subscribeLocked subscribes to a thread that waits for a person. A new subscriber
// receives its open requests again.
func (s *server) subscribeLocked(id string, t *thread) {
	if !t.waits || t.subscribed || !s.known[id] || !s.opts.Desk.Shows(bridge.Codex) {
		return
	}
	t.subscribed = true
	s.sendAsync(func(ctx context.Context) {
		raw, err := s.client.Request(ctx, "thread/resume", map[string]any{"threadId": id, "excludeTurns": true})
		s.mu.Lock()
		defer s.mu.Unlock()
		switch status, known := statusIn(raw); {
		case s.threads[id] != t: // the thread ended meanwhile
		case err != nil:
			s.opts.Log.Warn("a prompt of codex is left to its terminal", "thread", id, "err", err)
			t.subscribed = false // until the next poll
		case known && status.Type != "active": // the end was published before we subscribed
			s.leaveLocked(id, prompt.WentOn)
		}
	})
}

// statusIn returns the status of the thread in an answer.
func statusIn(raw json.RawMessage) (found status, known bool) {
	var answer struct {
		Thread struct {
			Status status `json:"status"`
		} `json:"thread"`
	}
	known = json.Unmarshal(raw, &answer) == nil && answer.Thread.Status.Type != ""
	return answer.Thread.Status, known
}

// sendAsync starts a request to codex. Later messages do not wait for it. The caller holds
// the lock.
func (s *server) sendAsync(do func(ctx context.Context)) {
	life := s.ctx
	if s.closed {
		return
	}
	s.asking.Go(func() {
		ctx, cancel := context.WithTimeout(life, answerTime)
		defer cancel()
		do(ctx)
	})
}
