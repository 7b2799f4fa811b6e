package broker

import (
	"context"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// What the page shows before the owner sends is what the broker answers after it,
// and each fact of a session reaches the table.
func TestCHT_03_CHT_07_CHT_17_CHT_20_ThePageIsToldWhatTheBrokerDoes(t *testing.T) {
	stop := session.HookCall{Event: session.EventStop, SessionID: "s1"}
	tests := []struct {
		name, owner, hint string
		open              func(b *bench) peer
	}{
		{"nothing reported", "looks there", "looks there", func(b *bench) peer { return b.join(api.Register{Name: "p", SessionID: "s1"}) }},
		{"hooks, none waits", "No wake hook waits now", "No wake hook waits now", func(b *bench) peer {
			p := b.join(api.Register{Name: "p", SessionID: "s1"})
			b.hook(stop, true)
			return p
		}},
		{"hooks, busy", "safe step", "safe step", func(b *bench) peer {
			p := b.join(api.Register{Name: "p", SessionID: "s1"})
			b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
			return p
		}},
		{"a wake hook waits", "A wake hook starts a turn of p", "A wake hook starts a turn of p", func(b *bench) peer {
			p := b.join(api.Register{Name: "p", SessionID: "s1"})
			b.hook(stop, true)
			b.wakeHook(false)
			eventually(b.t, "the hook waits", func() bool { return b.waits(p.ID, false) })
			return p
		}},
		{"a channel", "p's channel", "p's channel", func(b *bench) peer {
			return b.join(api.Register{Name: "p", SessionID: "s1", Channel: true})
		}},
		{"a mod", "The mod of p", "No wake hook waits now", func(b *bench) peer {
			p := b.claude("p", "s1", "")
			b.mod("s1").prompts()
			return p
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			p := tt.open(b)
			reach := b.peerNamed("p").Reach
			if !strings.Contains(reach.Owner, tt.owner) || !strings.Contains(reach.Child.Hint, tt.hint) {
				t.Errorf("the page is told %+v, want %q and %q", reach, tt.owner, tt.hint)
			}
			if got := b.chat(chat.Request{Session: p.ID, Body: "hello"}); got.Detail != reach.Owner {
				t.Errorf("the answer is %q, before it was %q", got.Detail, reach.Owner)
			}
		})
	}
}

// A wake hook comes a moment after the turn's end, when the page has looked already.
func TestCHT_03_CHT_17_ThePageIsToldThatAWakeHookCameAndLeft(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1"})
	stop := session.HookCall{Kind: bridge.Claude, Event: session.EventStop, HostEvent: "Stop", SessionID: "s1"}
	b.hook(stop, true)
	hook := b.dial(api.RoleHook)
	come := func() (leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = hook.WakeWait(ctx, api.WakeWait{Call: stop})
		}()
		eventually(t, "the hook waits", func() bool { return b.waits(p.ID, false) })
		return func() {
			cancel()
			<-ended
			eventually(t, "the hook has left", func() bool { return !b.waits(p.ID, false) })
		}
	}
	come()() // whatever else a first one changes has happened
	changes, end := b.broker.Watch()
	defer end()
	wantChange := func(what string) {
		select {
		case <-changes:
		case <-time.After(testkit.Patience):
			t.Fatalf("nothing tells the page of %q", what)
		}
		if got := b.peerNamed("p").Reach.Owner; !strings.Contains(got, what) {
			t.Errorf("the page is told %q, want %q", got, what)
		}
	}
	leave := come()
	wantChange("A wake hook starts a turn of p")
	leave()
	wantChange("No wake hook waits now")
}

func TestCHT_11_ThePageIsToldHowANoteTravels(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s1", ChildID: "c1", ChildTitle: "explore"}, true)
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
	hint := b.peerNamed("p").Reach.Child.Hint
	got := b.chat(chat.Request{Session: p.ID, Child: "c1", ToParent: true, Body: "look again"})
	if got.Detail == "" || hint != "The note is mail for p. "+got.Detail {
		t.Errorf("the answer is %q, before it was %q", got.Detail, hint)
	}
}

func TestCHT_04_ThePageIsToldWhenCodexReads(t *testing.T) {
	b := newBench(t)
	b.codex("exit 0")
	for name, server := range map[string]bool{"seldom": false, "server": true} {
		p := b.join(api.Register{Name: name, Kind: bridge.Codex, SessionID: "t-" + name, Threads: server})
		b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t-" + name}, true)
		want := map[bool]string{false: name + " reads it within 10 seconds", true: name + " reads it at once."}[server]
		if got := b.peerNamed(name).Reach.Owner; !strings.Contains(got, want) {
			t.Errorf("%s: the page is told %q", name, got)
		}
		if got := b.chat(chat.Request{Session: p.ID, Body: "hello"}).Detail; !strings.HasPrefix(got, "codex took it. It is in codex's queue; "+want) {
			t.Errorf("%s: the answer is %q", name, got)
		}
	}
}

func TestCHT_18_CHT_19_ThePageIsToldWhatIsInTheWay(t *testing.T) {
	b := newBench(t)
	b.codex(refuses)
	b.cli = func(context.Context, bridge.AgentKind) (agent.Found, error) {
		return agent.Found{Version: "2.0.3"}, nil
	}
	b.restart()
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	b.join(api.Register{Name: "docs", Kind: bridge.OpenCode, SessionID: "s2", WakePrefs: &api.WakePolicy{AutoWake: true}})
	b.hook(session.HookCall{Kind: bridge.OpenCode, Event: session.EventIdle, SessionID: "s2"}, true)
	if got := b.peerNamed("web").Reach.Obstacle; got != "Only its inbox is open." {
		t.Errorf("before any hook: %q", got)
	}
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t1"}, true)
	answer := b.chat(chat.Request{Session: web.ID, Body: "hello"}).Detail
	if want := "so it is mail. web reads it at its next turn; the last wake did not reach it."; !strings.HasSuffix(answer, want) {
		t.Errorf("the answer is %q, want it to end in %q", answer, want)
	}
	if got := b.peerNamed("web").Reach; got.Obstacle != "It could not be woken." || !strings.Contains(got.Owner, "as it did last time") {
		t.Errorf("after a refusal: %+v", got)
	}
	eventually(t, "its version is known", func() bool { return b.peerNamed("docs").Problem != "" })
	if got := b.peerNamed("docs").Reach; got.Obstacle != "Something may not work." || !strings.HasPrefix(got.WokenBy, "any mail") {
		t.Errorf("a version that was never tried: %+v", got)
	}
}

func (b *bench) peerNamed(name string) api.Peer {
	b.t.Helper()
	peers, err := b.broker.Peers(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range peers {
		if p.Name == name {
			return p
		}
	}
	b.t.Fatalf("no %s among %+v", name, peers)
	return api.Peer{}
}
