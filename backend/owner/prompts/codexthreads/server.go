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

// answerTime bounds what codex is asked for besides.
const answerTime = 10 * time.Second

// server is one background server while prompts of its threads are wanted. It is what
// holds their cards.
type server struct {
	opts   Options
	leave  context.CancelFunc
	ended  chan struct{}
	client codex          // nil until there is a connection
	asking sync.WaitGroup // what waits for the owner or for codex

	mu      sync.Mutex      // guards what follows, and that what is sent is told before what comes of it
	ctx     context.Context //nolint:containedctx // the connection's own life
	gone    bool            // nothing begins any more
	known   map[string]bool // the threads that are sessions of Bridge
	threads map[string]*thread
}

// codex is the way to the server; *appserver.Client is one.
type codex interface {
	// Request asks for something; a *run.Refusal is the server's own no.
	Request(ctx context.Context, method string, params any) (json.RawMessage, error)
	// Answer answers a request of the server's. Nothing takes it back.
	Answer(ctx context.Context, id json.RawMessage, result any) error
}

// thread is one of the server's threads.
type thread struct {
	waits      bool // it waits for a person
	subscribed bool // we hear what it does
	asks       map[string]*ask
	changes    map[string]appserver.Item // of files, that have begun
}

// The flags of a thread that waits for a person.
var waitingFlags = []string{"waitingOnApproval", "waitingOnUserInput"}

// mutes are notifications of which a busy thread sends many, and which say nothing here.
var mutes = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded", "item/reasoning/textDelta",
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "item/fileChange/patchUpdated", "command/exec/outputDelta", "process/outputDelta",
	"hook/started", "hook/completed", "thread/started", "thread/name/updated", "thread/goal/cleared", "turn/diff/updated", "turn/plan/updated", "thread/tokenUsage/updated", "account/rateLimits/updated", "rawResponseItem/completed",
}

// note is what notifications carry, as far as it is read.
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

// serve is a client of the server until ctx ends or the connection does.
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
	s.gone = true
	s.mu.Unlock()
	s.opts.Desk.Release(s) // nobody hands an answer over any more
	s.asking.Wait()
	s.opts.Desk.Release(s) // of what was on its way to the owner
	return <-opened
}

// open begins the conversation, and looks at the threads that may wait already.
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

// read asks how a thread stands.
func (s *server) read(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	raw, err := s.client.Request(ctx, "thread/read", map[string]any{"threadId": id, "includeTurns": false})
	status, known := statusIn(raw)
	if err != nil || !known {
		return // it has had no turn yet, and so no prompt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standsLocked(id, status)
}

// look takes in which threads are sessions now, and whether the owner wants to see
// their prompts. Where he does not, the server is left as soon as no card is open.
func (s *server) look(known map[string]bool, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
	if s.client == nil || s.gone {
		return // on its way, or over
	}
	if len(known) == 0 || !shown && !s.holdsLocked() {
		s.leave()
		return
	}
	if !shown {
		return
	}
	for id, t := range s.threads {
		s.subscribeLocked(id, t)
		for _, one := range t.asks {
			s.holdLocked(one)
		}
	}
}

// holdsLocked reports whether a card is open or its fate unknown.
func (s *server) holdsLocked() bool {
	for _, t := range s.threads {
		for _, one := range t.asks {
			if one.prompt != "" {
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

// take takes in what the server says, in its order. What it asks and is not for the
// owner is never answered: other clients do.
func (s *server) take(line appserver.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line.ID != nil {
		s.askedLocked(line)
		return
	}
	var said note
	if json.Unmarshal(line.Params, &said) != nil || said.Thread == "" {
		return
	}
	switch line.Method {
	case "thread/status/changed":
		s.standsLocked(said.Thread, said.Status)
	case "serverRequest/resolved":
		s.resolvedLocked(said.Thread, string(said.Request))
	case "item/started":
		if said.Item.Type == "fileChange" {
			s.threadLocked(said.Thread).changes[said.Item.ID] = said.Item
		}
	case "item/completed":
		s.completedLocked(said.Thread, said.Item)
	case "turn/completed":
		sign := prompt.WentOn
		if said.Turn.Status == "interrupted" {
			sign = prompt.Stopped
		}
		s.leaveLocked(said.Thread, sign)
	case "thread/closed":
		s.leaveLocked(said.Thread, prompt.Gone)
	}
}

// standsLocked takes in how a thread stands. How its turn has ended is told behind it, to
// whoever listens.
func (s *server) standsLocked(id string, status status) {
	t := s.threadLocked(id)
	t.waits = status.waits()
	if status.Type == "active" {
		s.subscribeLocked(id, t)
	} else if !t.subscribed {
		s.leaveLocked(id, prompt.WentOn)
	}
}

// leaveLocked ends what a thread has asked and listens to it no more: whoever does keeps
// it in memory.
func (s *server) leaveLocked(id string, sign prompt.Sign) {
	t := s.threadLocked(id)
	s.endedLocked(id, sign)
	delete(s.threads, id)
	if t.subscribed {
		s.beside(func(ctx context.Context) {
			_, _ = s.client.Request(ctx, "thread/unsubscribe", map[string]any{"threadId": id}) // the connection's end does it, too
		})
	}
}

// subscribeLocked listens to a thread that waits for a person. What it has asked comes
// again to whoever begins to listen.
func (s *server) subscribeLocked(id string, t *thread) {
	if !t.waits || t.subscribed || !s.known[id] || !s.opts.Desk.Shows(bridge.Codex) {
		return
	}
	t.subscribed = true
	s.beside(func(ctx context.Context) {
		raw, err := s.client.Request(ctx, "thread/resume", map[string]any{"threadId": id, "excludeTurns": true})
		s.mu.Lock()
		defer s.mu.Unlock()
		switch status, known := statusIn(raw); {
		case s.threads[id] != t: // it ended meanwhile
		case err != nil:
			s.opts.Log.Warn("a prompt of codex is left to its terminal", "thread", id, "err", err)
			t.subscribed = false // until the next look
		case known && status.Type != "active": // its end was told before we listened
			s.leaveLocked(id, prompt.WentOn)
		}
	})
}

// statusIn is how the thread stands that an answer holds.
func statusIn(raw json.RawMessage) (found status, known bool) {
	var answer struct {
		Thread struct {
			Status status `json:"status"`
		} `json:"thread"`
	}
	known = json.Unmarshal(raw, &answer) == nil && answer.Thread.Status.Type != ""
	return answer.Thread.Status, known
}

// beside, under the lock, asks codex for something without keeping its next words waiting.
func (s *server) beside(do func(ctx context.Context)) {
	life := s.ctx
	if s.gone {
		return
	}
	s.asking.Go(func() {
		ctx, cancel := context.WithTimeout(life, answerTime)
		defer cancel()
		do(ctx)
	})
}
