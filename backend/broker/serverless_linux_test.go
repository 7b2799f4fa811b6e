package broker

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

const ownThread = "thread-0001"

// serverless waits until the session has no MCP server any more, or has one again.
func (b *bench) serverless(kind bridge.AgentKind, want bool) (found session.Session) {
	b.t.Helper()
	eventually(b.t, "the loss of its server", func() bool {
		s, live := b.bound(kind, ownThread)
		found = s
		return live && s.Serverless == want
	})
	return found
}

func (b *bench) left(kind bridge.AgentKind) {
	b.t.Helper()
	eventually(b.t, "the session leaves", func() bool {
		_, live := b.bound(kind, ownThread)
		return !live
	})
}

// idOf is the id that an agent's server knows: codex tells it none.
func idOf(kind bridge.AgentKind) string {
	return map[bridge.AgentKind]string{bridge.Claude: ownThread}[kind]
}

func TestRWM_25_ASessionWhoseServerEndedStaysWhileItsAgentRuns(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			writer := b.join(api.Register{Name: "writer"})
			agents := b.plant(agentOf(string(kind),
				server(kind, idOf(kind), "/src"), hookOf(kind, session.EventStart, ownThread, "/src"), hookOf(kind, session.EventTool, ownThread, "/src"),
				node{Ends: true}, node{Waits: true}, hookOf(kind, session.EventTool, ownThread, "/src"), node{Waits: true},
				node{Program: "node", Stays: true}, node{Waits: true}, server(kind, idOf(kind), "/src")))
			agents.next()
			s := b.serverless(kind, true)
			peer := b.peerNamed(s.Name)
			if peer.Transport != "hooks" || !strings.Contains(peer.Problem, "Its MCP server has ended") || !strings.Contains(peer.Detail, "To start the server again, ") {
				t.Errorf("it is shown as %+v", peer)
			}
			if sent := writer.mustSend(api.SendArgs{To: s.Name, Body: "to one without a server"}); !sent.Recipients[0].Online {
				t.Errorf("the message went to %+v", sent)
			}
			if outputs := agents.goOn(); !strings.Contains(outputs[ownThread], "to one without a server") {
				t.Errorf("its hook was told %q", outputs)
			}

			agents.goOn() // its shell runs a program
			below, err := proc.Children(s.AgentPID)
			if err != nil || len(below) != 1 {
				t.Fatalf("below the agent are %+v, %v", below, err)
			}
			if above := b.broker.AgentAbove(below[0].PID); above == nil || above.ID != s.ID {
				t.Errorf("a program in its shell is of %+v", above)
			}

			agents.goOn() // a new server
			successor := b.serverless(kind, false)
			if successor.ID != s.ID || successor.Name != s.Name || b.peerNamed(s.Name).Problem != "" {
				t.Errorf("it came back as %+v, %+v", successor, b.peerNamed(s.Name))
			}
			agents.end()
			b.left(kind)
		})
	}
}

func TestRWM_25_ASessionWithoutServerLeavesWithItsAgent(t *testing.T) {
	b := newBench(t)
	agents := b.plant(agentOf("claude", server(bridge.Claude, ownThread, "/src"), hookOf(bridge.Claude, session.EventStart, ownThread, "/src"), node{Ends: true}))
	agents.next()
	s := b.serverless(bridge.Claude, true)
	if !b.broker.Busy() {
		t.Error("the broker may leave while the session needs it")
	}
	agents.end()
	b.left(bridge.Claude)
	b.broker.Lock()
	defer b.broker.Unlock()
	if len(b.broker.Serverless) > 0 || b.broker.Boxes[s.ID] != nil {
		t.Errorf("left behind: %+v", b.broker.Serverless)
	}
}

func TestRWM_25_WhoLeavesAtTheEndOfItsServer(t *testing.T) {
	start, stays := hookOf(bridge.Claude, session.EventStart, ownThread, "/src"), node{Ends: true}
	for name, steps := range map[string][]node{
		"no hook has reported":       {server(bridge.Claude, ownThread, "/src"), stays},
		"its hook has told the end":  {server(bridge.Claude, ownThread, "/src"), start, hookOf(bridge.Claude, session.EventEnd, ownThread, "/src"), stays},
		"one of a background server": {{Program: "bridge-mcp", Register: &api.Register{Kind: bridge.Codex, Threads: true, Cwd: "/src"}, Stays: true}, hookOf(bridge.Codex, session.EventStart, ownThread, "/src"), stays},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			program := "claude"
			if steps[0].Register.Kind == bridge.Codex {
				program = "codex"
			}
			b.grow(agentOf(program, steps...))
			b.left(steps[0].Register.Kind)
		})
	}
	t.Run("after a clear it stays", func(t *testing.T) {
		b := newBench(t)
		end, restart := hookOf(bridge.Claude, session.EventEnd, "before-0001", "/src"), start
		restart.Hook = &session.HookCall{Kind: bridge.Claude, Event: session.EventStart, HostEvent: "SessionStart", Source: "clear", SessionID: ownThread, Cwd: "/src"}
		b.grow(agentOf("claude", server(bridge.Claude, "before-0001", "/src"), end, restart, stays))
		b.serverless(bridge.Claude, true)
	})
}

// A server that closes its connection and runs on comes back with the mail that it holds.
func TestRWM_25_ASessionLeavesWhileItsServerRuns(t *testing.T) {
	b := newBench(t)
	server := b.join(api.Register{SessionID: ownThread, AgentPID: os.Getppid(), HostKnown: true})
	b.hook(session.HookCall{Event: session.EventStart, SessionID: ownThread, Source: "startup"}, false)
	server.Close()
	b.left(bridge.Claude)
}

// A broker that begins after the end of the server hears of the session by its hooks.
func TestRWM_25_AHookBringsAKnownSessionBack(t *testing.T) {
	for _, tt := range []struct {
		name  string
		event session.Event
		id    string
		want  bool
		soon  bool // the broker has just begun
		runs  bool // another server of Bridge's runs below the agent
	}{
		{name: "a tool's end", event: session.EventTool, id: ownThread, want: true},
		{name: "a prompt", event: session.EventPrompt, id: ownThread, want: true},
		{name: "a start, which its server follows", event: session.EventStart, id: ownThread},
		{name: "an end", event: session.EventEnd, id: ownThread},
		{name: "an unknown session", event: session.EventTool, id: "thread-0002"},
		{name: "its server may still come", event: session.EventTool, id: ownThread, soon: true},
		{name: "a server runs, and will come", event: session.EventTool, id: ownThread, runs: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			pass := b.clock()
			steps := []node{server(bridge.Claude, ownThread, "/src"), hookOf(bridge.Claude, session.EventStart, ownThread, "/src"), {Ends: true}}
			if tt.runs {
				steps = append(steps, node{Program: "bridge-mcp", Stays: true})
			}
			agents := b.plant(agentOf("claude", append(steps, node{Waits: true}, hookOf(bridge.Claude, tt.event, tt.id, "/src"))...))
			agents.next()
			s := b.serverless(bridge.Claude, true)
			b.restart()
			if !tt.soon {
				pass(time.Minute)
			}
			if tt.want {
				b.join(api.Register{Name: "writer"}).mustSend(api.SendArgs{To: s.ID, Body: "while it was unknown"})
			}
			outputs := agents.goOn()
			present, live := b.bound(bridge.Claude, tt.id)
			if live != tt.want || live && (present.ID != s.ID || present.Name != s.Name || !present.Serverless || !strings.Contains(outputs[tt.id], "while it was unknown")) {
				t.Errorf("it is %+v, live: %v, want %v; its hook was told %q", present, live, tt.want, outputs)
			}
			agents.end()
			b.left(bridge.Claude)
		})
	}
	t.Run("below no agent", func(t *testing.T) {
		b := newBench(t)
		pass := b.clock()
		b.plant(agentOf("claude", server(bridge.Claude, ownThread, "/src"), hookOf(bridge.Claude, session.EventStart, ownThread, "/src"))).next()
		b.restart()
		pass(time.Minute)
		b.hook(session.HookCall{Event: session.EventTool, SessionID: ownThread, Cwd: "/src"}, false)
		if s, live := b.bound(bridge.Claude, ownThread); live {
			t.Errorf("it is %+v", s)
		}
	})
}

// Several hooks of such a session may come at the same moment.
func TestRWM_25_EachHookThatBringsASessionBackFindsIt(t *testing.T) {
	b := newBench(t)
	pass := b.clock()
	agents := b.plant(agentOf("claude",
		server(bridge.Claude, ownThread, "/src"), hookOf(bridge.Claude, session.EventStart, ownThread, "/src"), node{Ends: true}, node{Waits: true}))
	agents.next()
	before := b.serverless(bridge.Claude, true)
	b.restart()
	pass(time.Minute)
	call := session.HookCall{Kind: bridge.Claude, Event: session.EventTool, SessionID: ownThread, Cwd: "/src", Ancestors: []int{before.AgentPID}}
	const hooks = 4
	var calls sync.WaitGroup
	var found [hooks]*session.Session
	for i := range hooks {
		calls.Go(func() { found[i], _ = b.broker.SessionOfHook(call) })
	}
	calls.Wait()
	for i, s := range found {
		if s == nil || s.ID != before.ID || s != found[0] {
			t.Errorf("hook %d finds %+v, want the session %s", i, s, before.ID)
		}
	}
}
