package broker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// holds are the points of the broker's work that a test holds, each once.
type holds struct {
	mu sync.Mutex
	do map[point]func()
}

// hold runs do when the broker comes to that point next; the broker waits.
func (h *holds) hold(at point, do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do[at] = do
}

func (h *holds) reached(at point) {
	h.mu.Lock()
	do := h.do[at]
	delete(h.do, at)
	h.mu.Unlock()
	if do != nil {
		do()
	}
}

// newHolds has a broker of its own tell its points.
func newHolds(b *bench) *holds {
	h := &holds{do: map[point]func(){}}
	b.step = h.reached
	b.restart()
	return h
}

// tellings counts how often a session's unread mail tells of a decision.
func tellings(t *testing.T, p peer, text string) int {
	t.Helper()
	return strings.Count(strings.Join(p.look(), "\n"), text)
}

func TestDEC_10_DEC_13_ASessionThatJoinsWhileADecisionIsWrittenIsToldOnce(t *testing.T) {
	join := func(b *bench) peer { return b.join(api.Register{Name: "joiner", SessionID: "s2"}) }
	// A process that is nobody yet learns from its first hook that it is a host
	// session from before, whose peer id it takes over.
	becomeKnown := func(b *bench) peer {
		b.hook(session.HookCall{Event: session.EventPreTool, SessionID: "s9", Ancestors: []int{os.Getppid()}}, false)
		return peer{}
	}
	for _, tt := range []struct {
		name string
		at   point
		// waits says that the joining cannot end while the point is held, only
		// come as far as its own write.
		waits bool
		join  func(*bench) peer
	}{
		{"it joins before the write", recording, false, join},
		{"it joins during the write", recipientsChosen, true, join},
		{"it learns who it is before the write", recording, false, becomeKnown},
		{"it learns who it is during the write", recipientsChosen, true, becomeKnown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			joined, settles := make(chan peer, 1), make(chan struct{})
			held := newHolds(b)
			author := b.join(api.Register{Name: "author", SessionID: "s1"})
			before := b.join(api.Register{Name: "joiner", SessionID: "s9"})
			before.Close()
			eventually(t, "it left", func() bool { return !isLive(b, before.ID) })
			unknown := b.join(api.Register{AgentPID: os.Getppid(), HostKnown: true})
			held.hold(persisting, func() { close(settles) })
			held.hold(tt.at, func() {
				if !tt.waits {
					joined <- tt.join(b)
					return
				}
				go func() { joined <- tt.join(b) }()
				<-settles
			})
			if _, err := author.Decide(t.Context(), api.DecideArgs{Topic: "db", Text: "SQLite it is"}); err != nil {
				t.Fatal(err)
			}
			p := <-joined
			if p.Client == nil {
				p = unknown
			}
			if got := tellings(t, p, "SQLite it is"); got != 1 {
				t.Errorf("the session is told %d times, want once", got)
			}
			if got := tellings(t, author, "SQLite it is"); got != 1 {
				t.Errorf("the author is told %d times, want once", got)
			}
		})
	}
}

func isLive(b *bench, id string) bool {
	b.broker.Lock()
	defer b.broker.Unlock()
	_, live := b.broker.Roster.Get(id)
	return live
}

func TestDEC_10_DEC_12_DEC_13_DecisionsAndSessionsComeTogether(t *testing.T) {
	b := newBench(t)
	author := b.join(api.Register{Name: "author", SessionID: "s1", Cwd: "/shop"})
	const decisions, sessions = 12, 12
	joined := make([]peer, sessions)
	var running sync.WaitGroup
	running.Go(func() {
		for n := range decisions {
			if _, err := author.Decide(t.Context(), api.DecideArgs{Topic: fmt.Sprint("topic ", n), Text: fmt.Sprintf("text <%d>", n)}); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range sessions {
		joined[n] = peer{Client: b.dial(api.RoleSession), b: b}
		running.Go(func() {
			register := api.Register{Kind: bridge.Claude, Name: fmt.Sprint("p", n), Cwd: "/shop", SessionID: fmt.Sprint("s", n+2)}
			if _, err := joined[n].Register(t.Context(), register); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for _, p := range slices.Concat(joined, []peer{author}) {
		for n := range decisions {
			if got := tellings(t, p, fmt.Sprintf("text <%d>", n)); got != 1 {
				t.Errorf("a session is told %d times of decision %d, want once", got, n)
			}
		}
	}
}

func TestDEC_05_NamePeerIDAndHostSessionIDAreOneSession(t *testing.T) {
	b := newBench(t)
	author := b.join(api.Register{Name: "author", SessionID: "s1", Cwd: "/a"})
	p := b.join(api.Register{Name: "p", SessionID: "thread-1", Cwd: "/b"})
	b.join(api.Register{Name: "other", SessionID: "s3", Cwd: "/c"})
	for topic, terms := range map[string][]string{
		"by name": {"p"}, "by peer id": {p.ID}, "by host id": {"thread-1"}, "by all": {"p", p.ID, "thread-1"},
	} {
		decided, err := author.Decide(t.Context(), api.DecideArgs{Topic: topic, Text: topic, Scope: &decision.Scope{Sessions: terms}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(decided.DeliveredTo, []string{"p"}) || !slices.Equal(decided.Decision.Scope.Sessions, terms) {
			t.Errorf("DEC-04 DEC-05 %s: delivered to %q for %q, want p alone and the words as recorded", topic, decided.DeliveredTo, decided.Decision.Scope.Sessions)
		}
	}
	for _, name := range []string{"p", p.ID, "thread-1"} {
		found, err := author.Decisions(t.Context(), api.DecisionsArgs{Scope: &decision.Scope{Sessions: []string{name}}})
		if err != nil || len(found) != 4 {
			t.Errorf("DEC-05 a lookup of %s finds %d decisions, %v; want all 4", name, len(found), err)
		}
	}
	if found, err := author.Decisions(t.Context(), api.DecisionsArgs{Scope: &decision.Scope{Sessions: []string{"other", "s3"}}}); err != nil || len(found) != 0 {
		t.Errorf("DEC-05 a lookup of another session finds %+v, %v; want nothing", found, err)
	}
}

// A session may be called by another's id only after a decision named that id:
// the decision stays the other's.
func TestDEC_05_ADecisionForAnIDIsNotForWhoeverIsCalledSo(t *testing.T) {
	b := newBench(t)
	author := b.join(api.Register{Name: "author", SessionID: "s1", Cwd: "/a"})
	p := b.join(api.Register{Name: "p", SessionID: "thread-1", Cwd: "/b"})
	scope := &decision.Scope{Sessions: []string{"thread-1"}}
	if _, err := author.Decide(t.Context(), api.DecideArgs{Topic: "t", Text: "for one", Scope: scope}); err != nil {
		t.Fatal(err)
	}
	taker := b.join(api.Register{Name: "thread-1", SessionID: "s3", Cwd: "/c"})
	if got := tellings(t, taker, "for one"); got != 0 {
		t.Errorf("the session of that name is told %d times, want never", got)
	}
	if strings.Contains(taker.Note, "for one") {
		t.Errorf("its note says %q", taker.Note)
	}
	if found, err := taker.Decisions(t.Context(), api.DecisionsArgs{}); err != nil || len(found) != 0 {
		t.Errorf("it finds %+v, %v as its own", found, err)
	}
	if got := tellings(t, p, "for one"); got != 1 {
		t.Errorf("the session of that id is told %d times, want once", got)
	}
}
