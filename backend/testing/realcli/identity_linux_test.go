package realcli_test

import (
	"context"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// session is an interactive session, whatever its kind.
type session interface {
	prompter
	Close(ctx context.Context) error
}

// sessionCase is one kind of CLI with what differs in these tests.
type sessionCase struct {
	kind  string
	open  func(w *world, name string, args ...string) session
	again string // the argument before the id of a session to resume
	tools string // prefix of Bridge's tools
	shell scripted.Step
	child scripted.Step // starts a child that plays script:child
}

// name is the session's default name in the project p.
func (c sessionCase) name() string { return c.kind + "-p" }

func childTask(kind string) map[string]any {
	return map[string]any{"description": "a child", "prompt": "play script:child", "subagent_type": kind}
}

var sessionCases = []sessionCase{
	{
		kind: "claude", again: "--resume", tools: claudeTool, shell: claudeShell,
		child: scripted.Call("Task", childTask("general-purpose")),
		open: func(w *world, name string, args ...string) session {
			return w.open(name, "p", "❯", append(scripted.ClaudeCommand("bridge"), args...)...)
		},
	},
	{
		kind: "codex", again: "resume", tools: codexTool, shell: codexShell,
		child: scripted.Call("multi_agent_v1/spawn_agent", map[string]any{"message": "play script:child"}),
		open: func(w *world, name string, args ...string) session {
			return w.open(name, "p", "›", scripted.CodexCommand(args...)...)
		},
	},
	{
		kind: "opencode", again: "--session", tools: openCodeTool, shell: openCodeShell,
		child: scripted.Call("task", childTask("general")),
		open: func(w *world, name string, args ...string) session {
			return w.openOpenCode(name, "p", args...)
		},
	},
}

// oneOfEach skips a kind that a short run tries elsewhere: it tries one kind here, and every
// kind's sessions and children in the tests of how the owner reaches them.
func oneOfEach(t *testing.T, c sessionCase) {
	t.Helper()
	if c.kind != sessionCases[0].kind {
		testkit.Long(t, "each kind is started twice")
	}
}

// TestRealChildrenLeaveMailAlone: what a native child does, calls of the mail
// tools included, never takes the mail of its session (MSG-06).
func TestRealChildrenLeaveMailAlone(t *testing.T) {
	for _, c := range sessionCases {
		t.Run("MSG-06 "+c.kind, func(t *testing.T) {
			oneOfEach(t, c)
			const mail = "For the main session alone."
			w := newWorld(t, "p")
			w.install(c.kind)
			w.withoutMod() // it would wait for the end of the turn
			session := c.open(w, c.kind)
			w.meet(session, c.name())
			w.model.Script("parent", c.child, c.shell.After("parent-steps"), scripted.Say("parent done"))
			w.model.Script("child",
				c.shell.After("child-steps"),
				scripted.Call(c.tools+"inbox", map[string]any{}),
				scripted.Say("child done").After("child-ends"))
			w.prompt(session, "parent")
			must(t, w.model.AtGate(soon(t), "child-steps"))
			w.bridge("send", c.name(), mail)

			w.model.Open("child-steps")
			must(t, w.model.AtGate(soon(t), "child-ends"))
			for _, r := range w.model.Requests() {
				if r.Child() && r.Count(mail) > 0 {
					t.Errorf("a child was shown its session's mail: %v", r)
				}
			}
			s := w.shown("the mail", func(s state) bool { return s.message(mail).ID != "" })
			if got := s.message(mail).to(c.name()).reached(); got != "accepted durable" {
				t.Errorf("after all that the child did, the mail has reached the stages %q", got)
			}

			w.model.Open("child-ends")
			w.model.Open("parent-steps")
			step := w.request("the session's next step", asks("parent", 2))
			if got := shows(step, mail); got != 1 {
				t.Errorf("the session was shown its mail %d times", got)
			}
			w.shown("the mail to be consumed", func(s state) bool { return s.message(mail).State == "consumed" })
		})
	}
}

// TestRealSessionKeepsItsIdentity: a session that ends and is resumed is the
// same one, even under another broker. It gets what came meanwhile and is told
// nothing twice (MSG-05, MSG-06, DEC-12).
func TestRealSessionKeepsItsIdentity(t *testing.T) {
	for _, c := range sessionCases {
		t.Run("MSG-05 DEC-12 "+c.kind, func(t *testing.T) {
			oneOfEach(t, c)
			const mail, rule = "Written while you were away.", "Tabs, not spaces."
			w := newWorld(t, "p")
			w.install(c.kind)
			w.withoutMod() // the mail is to wait for the prompt
			session := c.open(w, c.kind)
			before := w.meet(session, c.name())
			w.model.Script("decide",
				scripted.Call(c.tools+"decide", map[string]any{"topic": "style", "text": rule}), c.shell, scripted.Say("decided"))
			w.prompt(session, "decide")
			w.request("the step after the decision", asks("decide", 2))
			w.shown("the decision to be consumed", func(s state) bool {
				return s.message(rule).State == "consumed" && s.peer(c.name()).State == "idle"
			})
			must(t, session.Close(soon(t)))
			w.shown("the session to be gone", func(s state) bool { return s.peer(c.name()).ID == "" })
			w.bridge("send", c.name(), mail)
			must(t, w.page.stop())
			w.serve()

			w.model.Script("back", c.shell, scripted.Say("back"))
			session = c.open(w, c.kind+"-again", c.again, before.SessionID)
			w.prompt(session, "back")
			last := w.request("the resumed session's next step", asks("back", 1))
			for text, what := range map[string]string{mail: "what came meanwhile", rule: "the decision"} {
				if got := shows(last, text); got != 1 {
					t.Errorf("the session was shown %s %d times", what, got)
				}
			}
			s := w.shown("the mail to be consumed", func(s state) bool { return s.message(mail).State == "consumed" })
			after := s.peer(c.name())
			if after.ID != before.ID || after.SessionID != before.SessionID {
				t.Errorf("was %+v, is %+v", before, after)
			}
		})
	}
}
