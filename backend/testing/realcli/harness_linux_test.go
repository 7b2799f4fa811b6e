package realcli_test

import (
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// Each CLI, headless: a scripted turn with a shell command and a call of an MCP
// tool reaches the fake model and comes back, and hooks are heard.
func TestHeadlessTurn(t *testing.T) {
	type run func(w *world, prompt string) (string, error)
	cases := []struct {
		kind  string
		shell scripted.Step
		mcp   string
		run   run
		hooks bool
	}{
		{
			"claude", scripted.Call("Bash", map[string]any{"command": "echo shell-$((40+2))", "description": "count"}), "mcp__probe__echo",
			func(w *world, prompt string) (string, error) {
				return w.home.Claude(soon(w.T), w.home.Project("p"), prompt, "--allowedTools", "Bash mcp__probe__echo")
			}, true,
		},
		{
			"codex", scripted.Call("exec_command", map[string]any{"cmd": "echo shell-$((40+2))"}), "mcp__probe/echo",
			func(w *world, prompt string) (string, error) {
				return w.home.Codex(soon(w.T), w.home.Project("p"), prompt, "--dangerously-bypass-hook-trust")
			}, true,
		},
		{
			"opencode", scripted.Call("bash", map[string]any{"command": "echo shell-$((40+2))", "description": "count"}), "probe_echo",
			func(w *world, prompt string) (string, error) {
				return w.home.OpenCode(soon(w.T), w.home.Project("p"), prompt)
			}, false,
		},
	}
	for _, c := range cases {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t, "p")
			calls, hooks := w.installProbes("added-by-hook")
			w.model.Script("turn", c.shell, scripted.Call(c.mcp, map[string]any{"text": "hello"}), scripted.Say("all-said"))
			out, err := c.run(w, "play script:turn")
			must(t, err)
			if !strings.Contains(out, "all-said") {
				t.Errorf("the answer is not in the output:\n%s", out)
			}
			last := w.request("the third step", func(r scripted.Request) bool { return r.Script == "turn" && r.Step == 2 && !r.Aux })
			if !slices.Contains(last.Tools, c.mcp) {
				t.Errorf("the model is not offered %s: %v", c.mcp, last.Tools)
			}
			for text, most := range map[string]int{"shell-42": 1, "echo of hello": 1, "added-by-hook": 2} {
				if got := last.Count(text); text == "added-by-hook" && !c.hooks {
					continue
				} else if got != most {
					t.Errorf("the model read %q %d times, want %d", text, got, most)
				}
			}
			if got := len(lines(t, calls)); got != 1 {
				t.Errorf("the MCP server was called %d times", got)
			}
			if c.hooks {
				if got := len(lines(t, hooks)); got != 3 {
					t.Errorf("hooks were called %d times, want a start and two tools", got)
				}
			}
		})
	}
}

// A codex and a claude in terminals: a gate keeps a turn busy for as long as the
// test wants, and the session goes on when it opens.
func TestInteractiveTurnWaitsAtAGate(t *testing.T) {
	cases := []struct {
		kind, ready string
		argv        []string
		shell       string
		args        map[string]any
	}{
		{"claude", "❯", scripted.ClaudeCommand("probe"), "Bash", map[string]any{"command": "echo shell-$((40+2))", "description": "count"}},
		{"codex", "›", scripted.CodexCommand(), "exec_command", map[string]any{"cmd": "echo shell-$((40+2))"}},
	}
	for _, c := range cases {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t, "p")
			w.model.Script("turn", scripted.Call(c.shell, c.args).After("go"), scripted.Say("all-said"))
			terminal := w.open(c.kind, "p", c.ready, c.argv...)
			must(t, terminal.Prompt(soon(t), "play script:turn"))
			must(t, w.model.AtGate(soon(t), "go"))
			if screen := terminal.Screen(); strings.Contains(screen, "all-said") {
				t.Errorf("the turn did not wait:\n%s", screen)
			}
			w.model.Open("go")
			must(t, terminal.Until(soon(t), "the answer", func(screen string) bool { return strings.Contains(screen, "all-said") }))
			w.request("the tool's result", func(r scripted.Request) bool { return r.Step == 1 && r.Count("shell-42") == 1 })
		})
	}
}

// An opencode in a terminal is prompted through its own interface.
func TestOpenCodeInATerminal(t *testing.T) {
	w := newWorld(t, "p")
	w.model.Script("turn", scripted.Call("bash", map[string]any{"command": "echo shell-$((40+2))", "description": "count"}).After("go"), scripted.Say("all-said"))
	terminal := w.openOpenCode("opencode", "p")
	must(t, terminal.Prompt(soon(t), "play script:turn"))
	must(t, w.model.AtGate(soon(t), "go"))
	w.model.Open("go")
	must(t, terminal.Until(soon(t), "the answer", func(screen string) bool { return strings.Contains(screen, "all-said") }))
}

// A native child's requests are told from those of its session.
func TestChildIsToldFromItsSession(t *testing.T) {
	task := func(kind string) map[string]any {
		return map[string]any{"description": "a child", "prompt": "play script:child", "subagent_type": kind}
	}
	cases := []struct {
		kind string
		call scripted.Step
		run  func(w *world, prompt string) (string, error)
	}{
		{"claude", scripted.Call("Task", task("general-purpose")), func(w *world, prompt string) (string, error) {
			return w.home.Claude(soon(w.T), w.home.Project("p"), prompt)
		}},
		{"codex", scripted.Call("multi_agent_v1/spawn_agent", map[string]any{"message": "play script:child"}), func(w *world, prompt string) (string, error) {
			return w.home.Codex(soon(w.T), w.home.Project("p"), prompt)
		}},
		{"opencode", scripted.Call("task", task("general")), func(w *world, prompt string) (string, error) {
			return w.home.OpenCode(soon(w.T), w.home.Project("p"), prompt)
		}},
	}
	for _, c := range cases {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t, "p")
			w.model.Script("parent", c.call, scripted.Say("parent-said").After("child-asked"))
			w.model.Script("child", scripted.Say("child-said"))
			ended := make(chan error, 1)
			go func() {
				_, err := c.run(w, "play script:parent")
				ended <- err
			}()
			child := w.request("the child", func(r scripted.Request) bool { return r.Script == "child" && !r.Aux })
			w.model.Open("child-asked")
			must(t, <-ended)
			parent := w.request("the parent", func(r scripted.Request) bool { return r.Script == "parent" && !r.Aux })
			if parent.Child() || !child.Child() || child.Session != parent.Session || child.Session == "" {
				t.Errorf("parent %v\nchild %v", parent, child)
			}
		})
	}
}
