package realcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// An agent that a session's own shell starts is another agent: the session keeps its id,
// its folder, and the owner's words (RWM-03). It runs without an MCP server of Bridge's,
// and with one: then it is a session of its own while it runs. A short run tries one of both
// with each kind.
func TestRWM_03_AnAgentInASessionsShellTakesNothingOver(t *testing.T) {
	type inner struct{ name, command string }
	run := func(name string) map[string]any {
		return map[string]any{"command": name, "description": "start an agent", "timeout": 120_000}
	}
	for _, c := range []struct {
		session sessionCase
		args    []string
		call    func(command string) scripted.Step
		inner   []inner
	}{
		{
			session: sessionCases[0], call: func(command string) scripted.Step { return scripted.Call("Bash", run(command)) },
			inner: []inner{
				{"without a server", "cd sub && claude -p --strict-mcp-config 'play script:%s' --allowedTools Bash </dev/null"},
				{"with a server", "cd sub && claude -p 'play script:%s' --allowedTools Bash,mcp__bridge </dev/null"},
			},
		},
		{
			session: sessionCases[1], args: []string{"--dangerously-bypass-approvals-and-sandbox"},
			call: func(command string) scripted.Step {
				return scripted.Call("exec_command", map[string]any{"cmd": command, "yield_time_ms": 60_000})
			},
			inner: []inner{
				{"without a server", "cd sub && codex exec --skip-git-repo-check -c mcp_servers.bridge.enabled=false --dangerously-bypass-approvals-and-sandbox 'play script:%s' </dev/null"},
				{"with a server", "cd sub && codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox 'play script:%s' </dev/null"},
			},
		},
	} {
		for i, inside := range c.inner {
			t.Run(c.session.kind+" "+inside.name, func(t *testing.T) {
				if isCodex := c.session.kind == "codex"; isCodex == (i == 1) {
					testkit.Long(t, "each kind starts one agent")
				}
				w := newWorld(t, "p")
				w.install(c.session.kind)
				w.withoutMod()
				must(t, os.MkdirAll(filepath.Join(w.home.Project("p"), "sub"), 0o755))
				outer := c.session.open(w, c.session.kind, c.args...)
				before := w.meet(outer, c.session.name())

				script := fmt.Sprintf("inner-%d", i)
				w.model.Script(script, c.session.shell.After("inner-steps"), scripted.Say("inner done").After("inner-ends"))
				w.model.Script("outer", c.call("export PATH="+w.home.Bin+":$PATH; "+fmt.Sprintf(inside.command, script)), scripted.Say("outer done"))
				w.prompt(outer, "outer")
				must(t, w.model.AtGate(soon(t), "inner-steps"))
				const words = "For the one on the screen."
				w.bridge("send", c.session.name(), words)
				w.model.Open("inner-steps")
				must(t, w.model.AtGate(soon(t), "inner-ends"))
				w.same(before, "while the other agent works")
				w.model.Open("inner-ends")

				goesOn := w.request("the session's next step", asks("outer", 1))
				if got := shows(goesOn, words); got != 1 {
					t.Errorf("the session was shown its mail %d times", got)
				}
				for _, r := range w.model.Requests() {
					if asks(script, 0)(r) || asks(script, 1)(r) {
						if r.Count(words) > 0 {
							t.Errorf("the other agent was shown the session's mail: %v", r)
						}
					}
				}
				w.same(before, "after the other agent's end")
			})
		}
	}
}

// same checks that the page shows a session as it was.
func (w *world) same(before peer, when string) {
	w.Helper()
	now := w.shown(before.Name+" to be there", func(s state) bool { return s.peer(before.Name).Name == before.Name }).peer(before.Name)
	if now.SessionID != before.SessionID || now.Cwd != before.Cwd || now.ID != before.ID {
		w.Errorf("%s the session is %+v, and was %+v", when, now, before)
	}
}
