package broker

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// terminal is a codex in a terminal: a process that runs until end is called.
func (b *bench) terminal() (number int, end func()) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	process, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		b.t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	b.t.Cleanup(end)
	b.shows = append(b.shows, proc.InTerminal{Process: process, Named: proc.Name(process.PID), Cwd: "/a"})
	return len(b.shows) - 1, end
}

// typed says that a person has typed into a terminal at that time.
func (b *bench) typed(number int, at time.Time) {
	shows := append(agent.Terminals{}, b.shows...)
	shows[number].Read = at
	b.shows = shows
}

// turn plays a turn of a thread.
func (b *bench) turn(thread string) {
	b.t.Helper()
	for _, event := range []session.Event{session.EventStart, session.EventPrompt, session.EventStop} {
		b.says(event, thread, "/a")
	}
}

func (b *bench) sendsTo(peerID string) (online bool) {
	b.t.Helper()
	sent := b.join(api.Register{Name: "writer"}).mustSend(api.SendArgs{To: peerID, Body: "words"})
	return sent.Recipients[0].Online
}

func TestRWM_24_ATerminalShowsOneThread(t *testing.T) {
	b := newBench(t)
	number, end := b.terminal()
	first := b.thread("/a")
	b.turn("t1")
	b.wantRoll("the first conversation", "codex-a:t1")
	before, _ := b.bound(bridge.Codex, "t1")

	b.typed(number, time.Now())
	b.thread("/a")
	b.wantRoll("another one has begun", "codex-a:")
	if b.sendsTo(before.ID) {
		t.Error("the conversation that left the screen is called online")
	}
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "t1", ChildID: "c1", Cwd: "/a", Ancestors: []int{os.Getppid()}}, true)
	b.wantRoll("a prompt of its child", "codex-a: writer:")
	b.turn("t2")
	b.wantRoll("the other one", "codex-a:t2 writer:")
	b.typed(number, time.Now().Add(-time.Hour))
	b.turn("t1") // a queue of the host's own has started it
	b.wantRoll("a turn that nobody sees", "codex-a:t2 writer:")
	first.calls("t1")
	b.wantRoll("its own call", "codex-a-2:t1 codex-a:t2 writer:")
	b.says(session.EventStop, "t1", "/a")
	b.wantRoll("the end of its turn", "codex-a:t2 writer:")

	b.typed(number, time.Now())
	b.turn("t1") // a person has resumed it
	b.wantRoll("it is shown again", "codex-a:t1 writer:")
	if present, live := b.bound(bridge.Codex, "t1"); !live || present.ID != before.ID {
		t.Errorf("it came back as %+v", present)
	}
	end()
	b.wantRoll("the terminal is closed", "writer:")
	b.typed(number, time.Time{})
	b.says(session.EventTool, "t1", "/a")
	b.wantRoll("a hook of a thread that nobody sees", "writer:")
}

func TestRWM_24_WhichTerminalBeganAThread(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		read [2]time.Time
		want string
	}{
		{"the first was typed into", [2]time.Time{now, now.Add(-20 * time.Second)}, "codex-a-2:t2 codex-a:"},
		{"the second was typed into", [2]time.Time{now.Add(-20 * time.Second), now}, "codex-a-2: codex-a:t1"},
		{"both were typed into", [2]time.Time{now, now.Add(-time.Second)}, "codex-a-2:t2 codex-a:t1"},
		{"none was typed into", [2]time.Time{now.Add(-time.Minute), now.Add(-time.Hour)}, "codex-a-2:t2 codex-a:t1"},
		{"the system does not tell", [2]time.Time{}, "codex-a-2:t2 codex-a:t1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			for _, thread := range []string{"t1", "t2"} {
				b.terminal()
				b.thread("/a")
				b.turn(thread)
			}
			b.wantRoll("two terminals", "codex-a-2:t2 codex-a:t1")
			for number, at := range tt.read {
				b.typed(number, at)
			}
			b.thread("/a")
			b.wantRoll("another conversation", tt.want)
		})
	}
}

func TestRWM_24_OneTerminalEndsAndTheOtherStays(t *testing.T) {
	b := newBench(t)
	b.terminal()
	b.thread("/a")
	b.turn("t1")
	_, end := b.terminal()
	b.thread("/a")
	b.turn("t2")
	end()
	b.wantRoll("the second terminal is closed", "codex-a:t1")
}

func TestRWM_24_TheServerOfAChildTakesNothingAway(t *testing.T) {
	b := newBench(t)
	number, _ := b.terminal()
	b.thread("/a")
	b.turn("t1")
	b.says(session.EventPrompt, "t1", "/a")
	b.typed(number, time.Now())
	b.thread("/a")
	b.says(session.EventTool, "t1", "/a")
	b.wantRoll("its parent is at work", "codex-a:t1")

	b = newBench(t) // no hook tells whether it is at work
	number, _ = b.terminal()
	b.thread("/a").calls("t1")
	b.typed(number, time.Now())
	b.thread("/a")
	b.wantRoll("its parent may be at work", "codex-a:t1")
}

// After the start of another broker the terminal of a thread is known by the next prompt.
func TestRWM_24_APromptTellsTheTerminal(t *testing.T) {
	b := newBench(t)
	b.thread("/a")
	b.turn("t1")
	number, end := b.terminal()
	b.typed(number, time.Now())
	b.says(session.EventPrompt, "t1", "/a")
	b.wantRoll("the thread", "codex-a:t1")
	end()
	b.wantRoll("the terminal is closed", "")
}

// A codex without a background server tells the same by its second server.
func TestRWM_24_ACodexThatBeginsAgainIsNotWoken(t *testing.T) {
	for _, busy := range []bool{false, true} {
		b := newBench(t)
		own := api.Register{Kind: bridge.Codex, Cwd: "/a", AgentPID: os.Getppid(), HostKnown: true}
		b.join(own)
		b.turn("t1")
		before, _ := b.bound(bridge.Codex, "t1")
		if busy {
			b.says(session.EventPrompt, "t1", "/a")
		}
		if second := b.join(own); second.ID != "" {
			t.Errorf("the second server is the session %q", second.ID)
		}
		want := map[bool]string{false: "codex-a:", true: "codex-a:t1"}[busy]
		b.wantRoll("a second server", want)
		b.says(session.EventEnd, "t1", "/a")
		b.wantRoll("a late hook of the first conversation", want)
		b.turn("t2")
		b.wantRoll("the new conversation", "codex-a:t2")
		if after, _ := b.bound(bridge.Codex, "t2"); after.ID != before.ID {
			t.Errorf("busy %v: it was %s and is %s", busy, before.ID, after.ID)
		}
	}
}

// A server that connects again says which session it had: it begins no conversation.
func TestRWM_24_AServerThatConnectsAgainTakesNothingAway(t *testing.T) {
	own := api.Register{Kind: bridge.Codex, Cwd: "/a", AgentPID: os.Getppid(), HostKnown: true}
	for name, change := range map[string]func(args *api.Register, before peer){
		"by its peer id":    func(args *api.Register, before peer) { args.Previous = before.ID },
		"by its session id": func(args *api.Register, _ peer) { args.SessionID = "t1" },
		"by its name":       func(args *api.Register, before peer) { args.Name = before.Name },
	} {
		b := newBench(t)
		first := b.join(own)
		b.turn("t1")
		successor := own
		change(&successor, first)
		b.join(successor)
		if s, live := b.bound(bridge.Codex, "t1"); !live || s.ID != first.ID {
			t.Errorf("%s: the conversation is %+v", name, s)
		}
	}
}

// A conversation of opencode that called a tool is known to the plugin and to the server.
func TestRWM_24_OpencodeReturnsToAConversationThatCalledATool(t *testing.T) {
	const first, second = "ses_1", "ses_2"
	plugin := func(id string) node {
		return node{Program: "bridge-hook", Plugin: true, Stays: true, Register: &api.Register{Kind: bridge.OpenCode, SessionID: id, Cwd: "/a", Hooks: true}}
	}
	prompt := func(id string) node {
		hook := hookOf(bridge.OpenCode, session.EventPrompt, id, "/a")
		hook.Hook.Prompt = "words"
		return hook
	}
	stop := func(id string) node { return hookOf(bridge.OpenCode, session.EventIdle, id, "/a") }
	server := node{Program: "bridge-mcp", Register: &api.Register{Kind: bridge.OpenCode, Cwd: "/a", Shared: true}, Calls: first, Stays: true}
	for range 2 { // the connections have no order
		b := newBench(t)
		opencode := agentOf("opencode", plugin(first), prompt(first), server, stop(first), server, node{Waits: true},
			plugin(second), hookOf(bridge.OpenCode, session.EventPrompt, second, "/a"), stop(second), node{Waits: true},
			prompt(second), stop(second), node{Waits: true}, prompt(first), stop(first))
		opencode.Terminal = true
		tree := b.plant(opencode)
		tree.next()
		b.wantRoll("another server", "opencode-a:ses_1")
		tree.goOn()
		b.wantRoll("a turn that no person began", "opencode-a-2:ses_2 opencode-a:ses_1")
		tree.goOn()
		b.wantRoll("another conversation", "opencode-a:ses_2")
		tree.goOn()
		b.wantRoll("the first one again", "opencode-a:ses_1")
		if s, live := b.bound(bridge.OpenCode, first); !live || !s.Plugin {
			t.Errorf("it is %+v", s)
		}
		tree.end()
	}

	b := newBench(t)
	opencode := agentOf("opencode", plugin(first), prompt(first), stop(first), plugin(second), prompt(second))
	opencode.Terminal, opencode.Script = true, "serve"
	b.plant(opencode).next()
	b.wantRoll("a server in a terminal shows none", "opencode-a-2:ses_2 opencode-a:ses_1")
}
