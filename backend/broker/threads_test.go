package broker

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// thread is one server of a host that serves many threads from process 77.
func (b *bench) thread(cwd string) peer {
	b.t.Helper()
	return b.join(api.Register{Kind: bridge.Codex, Cwd: cwd, AgentPID: os.Getppid(), HostKnown: true, Threads: true})
}

// says lets a hook of one thread of that host report.
func (b *bench) says(event session.Event, thread, cwd string) {
	b.t.Helper()
	b.hook(session.HookCall{Kind: bridge.Codex, Event: event, SessionID: thread, Cwd: cwd, Ancestors: []int{os.Getppid()}}, true)
}

// roll lists the live sessions as name:thread.
func (b *bench) roll() string {
	b.t.Helper()
	peers, err := b.broker.Peers(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, p := range peers {
		thread := ""
		if p.SessionID != nil {
			thread = *p.SessionID
		}
		all = append(all, p.Name+":"+thread)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (b *bench) wantRoll(when, want string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Patience)
	defer cancel()
	for got := b.roll(); got != want; got = b.roll() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("%s: the sessions are %q, want %q", when, got, want)
		}
	}
}

// calls lets the thread itself call a tool through its server.
func (p peer) calls(thread string) {
	p.b.t.Helper()
	if _, err := p.Peers(p.b.t.Context(), api.Caller{SessionID: thread}); err != nil {
		p.b.t.Fatal(err)
	}
}

func TestMSG_03_ThreadsOfOneProcessAreSessionsOfTheirOwn(t *testing.T) {
	b := newBench(t)
	first, second := b.thread("/a"), b.thread("/a")
	if first.ID != "" || second.ID != "" {
		t.Errorf("servers that nobody has spoken for are the sessions %q and %q", first.ID, second.ID)
	}
	b.says(session.EventStart, "t1", "/a")
	b.says(session.EventStart, "t2", "/a")
	b.says(session.EventPrompt, "t1", "/a")
	b.wantRoll("both threads", "codex-a-2:t2 codex-a:t1")
	b.says(session.EventStart, "t3", "/a") // its server is not there yet
	b.wantRoll("no server is taken away", "codex-a-2:t2 codex-a:t1")
}

func TestMSG_03_ACallCorrectsWhoseAServerIs(t *testing.T) {
	b := newBench(t)
	first, second := b.thread("/a"), b.thread("/a")
	b.says(session.EventStart, "t1", "/a") // given to the first server
	b.says(session.EventStart, "t2", "/a")
	first.calls("t2")
	b.wantRoll("after the call", "codex-a-2:t2 codex-a:t1")
	second.Close()
	b.wantRoll("the thread of the server that ended is gone", "codex-a-2:t2")
	first.Close()
	b.wantRoll("and the other with its own", "")
}

func TestMSG_03_AThreadOutlivesAServerThatWasAGuess(t *testing.T) {
	b := newBench(t)
	child, own := b.thread("/a"), b.thread("/a")
	b.says(session.EventStart, "t1", "/a") // given to the first server, which is a child's
	child.Close()
	own.calls("t1")
	b.wantRoll("its child's server has ended", "codex-a:t1")
	b.says(session.EventEnd, "t1", "/a")
	b.wantRoll("its host says that it is over", "")
	b.says(session.EventStart, "t4", "/a")
	b.wantRoll("its server may stand for another", "codex-a:t4")
}

func TestMSG_03_AServerInTheThreadsFolderIsPreferred(t *testing.T) {
	b := newBench(t)
	b.thread("/a")
	inB := b.thread("/b")
	b.says(session.EventStart, "t1", "/b")
	b.wantRoll("the thread", "codex-b:t1")
	inB.calls("t1")
	b.wantRoll("the thread, proven", "codex-b:t1")
}

// ends closes the peer's connection and waits until the broker has seen it.
func (p peer) ends(remaining int) {
	p.b.t.Helper()
	p.Close()
	eventually(p.b.t, "the server has ended", func() bool {
		p.b.broker.Lock()
		defer p.b.broker.Unlock()
		servers := 0
		for _, l := range p.b.broker.Conns {
			if l.Identity != nil {
				servers++
			}
		}
		return servers == remaining
	})
}

func TestMSG_03_AGuessedThreadGoesOnWithAnotherServerAndAProvenOneEnds(t *testing.T) {
	b := newBench(t)
	first, second := b.thread("/a"), b.thread("/a")
	b.thread("/a")
	b.says(session.EventStart, "t1", "/a") // given to the first server
	first.ends(2)
	if got := b.roll(); got != "codex-a:t1" {
		t.Errorf("after the end of a server that was a guess: %q", got)
	}
	second.calls("t1")
	second.ends(1)
	if got := b.roll(); got != "" {
		t.Errorf("after the end of its own server: %q", got)
	}
}

func TestMSG_03_AServerThatIsProvenKeepsItsThread(t *testing.T) {
	b := newBench(t)
	first := b.thread("/a")
	first.calls("t1")
	first.calls("t2")
	if got := b.roll(); !strings.Contains(got, ":t1") || !strings.Contains(got, ":t2") {
		t.Errorf("after calls of two threads: %q", got)
	}
}

func TestMSG_03_AServerWithAnIdentityIsASessionAtOnce(t *testing.T) {
	b := newBench(t)
	register := api.Register{Kind: bridge.Codex, Cwd: "/a", AgentPID: os.Getppid(), HostKnown: true, Threads: true}
	named := register
	named.Name = "mine"
	first := b.join(named)
	if first.ID == "" || first.Name != "mine" {
		t.Errorf("with a name: %+v", first.Registered)
	}
	repeat := register
	repeat.Previous = first.ID
	first.ends(0)
	if second := b.join(repeat); second.ID != first.ID {
		t.Errorf("after a break: %+v, want the session %s", second.Registered, first.ID)
	}
}

func TestMSG_03_OnlyAThreadIsOverWhenItsHostSaysSo(t *testing.T) {
	b := newBench(t)
	b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventEnd, SessionID: "s1"}, true)
	if got := b.roll(); got != "app:s1" {
		t.Errorf("a session whose server goes on: %q", got)
	}
}
