package realcli_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// How each CLI names Bridge's tools and its own shell.
const (
	claudeTool   = "mcp__bridge__"
	codexTool    = "mcp__bridge/"
	openCodeTool = "bridge_"
)

var (
	claudeShell   = scripted.Call("Bash", map[string]any{"command": "true", "description": "nothing"})
	codexShell    = scripted.Call("exec_command", map[string]any{"cmd": "true"})
	openCodeShell = scripted.Call("bash", map[string]any{"command": "true", "description": "nothing"})
)

var mailID = regexp.MustCompile(`<bridge-message id="([^"]+)"`)

// reply answers the newest mail that the model was shown, by the id that stands
// in its envelope.
func reply(tool, to, text string) scripted.Step {
	return scripted.CallWith(tool, func(r scripted.Request) any {
		id := ""
		if all := mailID.FindAllStringSubmatch(r.Text(), -1); len(all) > 0 {
			id = all[len(all)-1][1]
		}
		return map[string]any{"to": to, "message": text, "reply_to": id}
	})
}

// asks finds the request of a main session for one step of a script.
func asks(script string, step int) func(scripted.Request) bool {
	return func(r scripted.Request) bool { return r.Script == script && r.Step == step && !r.Aux && !r.Child() }
}

// prompter is an interactive session, whatever its kind.
type prompter interface {
	Prompt(ctx context.Context, line string) error
}

// prompt submits `script:name` to a session.
func (w *world) prompt(session prompter, name string) {
	w.Helper()
	must(w.T, session.Prompt(soon(w.T), "play script:"+name))
}

// meet plays a first turn in a session, so that its host session id is known,
// and waits until the page shows the session idle under its name.
func (w *world) meet(session prompter, name string) peer {
	w.Helper()
	offered := false
	for round := 0; round < 5 && !offered; round++ { // the first turns may come before the MCP server is up
		script := fmt.Sprintf("meet-%s-%d", name, round)
		w.model.Script(script, scripted.Say("hello"))
		w.prompt(session, script)
		hello := w.request(name+"'s first request", asks(script, 0))
		offered = slices.ContainsFunc(hello.Tools, func(tool string) bool {
			return slices.Contains([]string{claudeTool + "send", codexTool + "send", openCodeTool + "send"}, tool)
		})
	}
	if !offered {
		w.Errorf("%s is not offered the tool send", name)
	}
	s := w.shown(name+" to be idle", func(s state) bool {
		p := s.peer(name)
		return p.SessionID != "" && p.State == "idle"
	})
	return s.peer(name)
}

// TestRealSessionsTalk is the acceptance of live messaging: three real CLIs in
// terminals, connected by `bridge install`, talk to each other while the page
// shows every stage.
func TestRealSessionsTalk(t *testing.T) {
	w := newWorld(t, "p")
	var claude, codex *scripted.Terminal
	var opencode *scripted.OpenCodeTerminal

	w.step("MSG-11 bridge install connects the CLIs of an empty home", func(w *world) { w.install() })

	w.step("MSG-03 MSG-09 MSG-11 each session is offered the tools and listed under its own name", func(w *world) {
		claude = w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
		codex = w.open("codex", "p", "›", scripted.CodexCommand()...)
		opencode = w.openOpenCode("opencode", "p")
		w.meet(claude, "claude-p")
		w.meet(codex, "codex-p")
		w.meet(opencode, "opencode-p")
	})

	const question, answer = "Which port shall we use?", "Use port 7443."
	w.step("MSG-04 MSG-06 a busy codex gets a message from claude at its next step", func(w *world) {
		w.model.Script("codex-busy",
			codexShell.After("codex-steps"),
			reply(codexTool+"send", "claude-p", answer).After("codex-replies"),
			scripted.Say("answered"))
		w.model.Script("claude-asks",
			scripted.Call(claudeTool+"send", map[string]any{"to": "codex-p", "message": question}),
			scripted.Say("asked").After("claude-ends"))
		w.prompt(codex, "codex-busy")
		must(w.T, w.model.AtGate(soon(w.T), "codex-steps"))
		w.shown("codex to be busy", func(s state) bool { return s.peer("codex-p").State == "busy" })
		w.prompt(claude, "claude-asks")
		w.request("claude to be told that the message is stored", asks("claude-asks", 1))
		s := w.shown("the question to be durable", func(s state) bool { return s.message(question).ID != "" })
		if got := s.message(question).to("codex-p").reached(); got != "accepted durable" {
			w.Errorf("while codex is at work the page shows the stages %q", got)
		}

		w.model.Open("codex-steps")
		step := w.request("codex's next step", asks("codex-busy", 1))
		if got := shows(step, question); got != 1 {
			w.Errorf("codex was shown the question %d times at its next step", got)
		}
		if !strings.Contains(step.Text(), "not your user") {
			w.Error("MSG-08: the mail is not presented as another agent's")
		}
	})

	w.step("MSG-06 MSG-07 the page shows each stage, and the reply reaches claude", func(w *world) {
		must(w.T, w.model.AtGate(soon(w.T), "codex-replies"))
		s := w.shown("the question to be handed over", func(s state) bool {
			return s.message(question).to("codex-p").at("handed") != 0
		})
		if got := s.message(question).to("codex-p").Stage; got != "handed" {
			w.Errorf("before codex did anything with it, the question is %q", got)
		}
		w.model.Open("codex-replies")
		s = w.shown("the question to be answered", func(s state) bool { return s.message(question).State == "answered" })
		w.checkStages(s.message(question).to("codex-p"))
		if got, want := s.message(answer).ReplyTo, s.message(question).ID; got != want {
			w.Errorf("the answer replies to %q, want %q", got, want)
		}

		// Claude is about to end its turn: the answer keeps it going.
		w.model.Open("claude-ends")
		if got := shows(w.request("claude to go on", asks("claude-asks", 2)), answer); got != 1 {
			w.Errorf("claude was shown the answer %d times", got)
		}
		w.shown("the answer to be consumed and claude idle", func(s state) bool {
			return s.message(answer).State == "consumed" && s.peer("claude-p").State == "idle"
		})
	})

	const news = "The build is green."
	w.step("MSG-05 a broadcast reaches a busy opencode at its next step", func(w *world) {
		w.model.Script("opencode-busy", openCodeShell.After("opencode-steps"), scripted.Say("read"))
		w.model.Script("codex-tells",
			scripted.Call(codexTool+"send", map[string]any{"to": "*", "message": news}),
			scripted.Say("told"))
		w.prompt(opencode, "opencode-busy")
		must(w.T, w.model.AtGate(soon(w.T), "opencode-steps"))
		w.prompt(codex, "codex-tells")
		s := w.shown("the broadcast", func(s state) bool { return s.message(news).ID != "" })
		if m := s.message(news); m.to("claude-p").Name == "" || m.to("opencode-p").Name == "" || m.to("codex-p").Name != "" {
			w.Errorf("the broadcast went to %+v", m.Deliveries)
		}
		w.model.Open("opencode-steps")
		step := w.request("opencode's next step", asks("opencode-busy", 1))
		if got := shows(step, news); got != 1 {
			w.Errorf("opencode was shown the broadcast %d times", got)
		}
		w.shown("the broadcast to be consumed by opencode", func(s state) bool {
			return s.message(news).to("opencode-p").at("consumed") != 0 && s.peer("opencode-p").State == "idle"
		})
	})

	const topic, rule = "release branch", "Releases are cut from main only."
	w.step("DEC-01 DEC-06 DEC-10 DEC-11 a decision reaches all three once", func(w *world) {
		w.model.Script("claude-decides",
			scripted.Call(claudeTool+"decide", map[string]any{"topic": topic, "text": rule}),
			claudeShell, scripted.Say("decided"))
		w.prompt(claude, "claude-decides")
		w.request("claude's last step", asks("claude-decides", 2))
		s := w.shown("the decision", func(s state) bool { return s.message(rule).ID != "" })
		for _, name := range []string{"claude-p", "codex-p", "opencode-p"} {
			if s.message(rule).to(name).Name == "" {
				w.Errorf("the decision was not queued for %s", name)
			}
		}
		w.model.Script("codex-next", codexShell, scripted.Say("seen"))
		w.model.Script("opencode-next", openCodeShell, scripted.Say("seen"))
		w.model.Script("claude-next", claudeShell, scripted.Say("seen"))
		w.prompt(codex, "codex-next")
		w.prompt(opencode, "opencode-next")
		w.prompt(claude, "claude-next")
		for _, script := range []string{"codex-next", "opencode-next", "claude-next"} {
			last := w.request("the last step of "+script, asks(script, 1))
			if got := shows(last, rule); got != 1 {
				w.Errorf("%s: the decision was shown %d times", script, got)
			}
			first := w.request("the decision in "+script, func(r scripted.Request) bool {
				return r.Session == last.Session && shows(r, rule) > 0
			})
			if first.Script != script && script != "claude-next" { // claude was at work
				w.Errorf("the decision woke an idle session: %v", first)
			}
		}
		w.shown("the decision to be consumed by all", func(s state) bool { return s.message(rule).State == "consumed" })
	})

	w.step("DEC-13 DEC-15 a session started later reads it in its session-start note", func(w *world) {
		w.model.Script("late", claudeShell, scripted.Say("late"))
		terminal := w.open("late", "p", "❯", scripted.ClaudeCommand("bridge")...)
		w.prompt(terminal, "late")
		first := w.request("the late session's first step", asks("late", 0))
		if note := fmt.Sprintf("- %s: %s", topic, rule); !strings.Contains(first.Text(), note) {
			w.Errorf("the note %q is not in what the session was shown:\n%s", note, first.Text())
		}
		last := w.request("the late session's next step", asks("late", 1))
		if got := shows(last, rule); got != 1 {
			w.Errorf("the session was told %d times", got)
		}
	})
}

// checkStages wants all six stages in order, each with its evidence where it
// rests on what was seen of the host.
func (w *world) checkStages(d delivery) {
	w.Helper()
	before := int64(1)
	for _, s := range d.Stages {
		if s.Stage == "woken" && s.At == 0 {
			continue // a session at work is not woken
		}
		if s.At < before {
			w.Errorf("stage %s is at %d, before the one above it at %d", s.Stage, s.At, before)
		}
		before = s.At
		if s.Evidence == "" && (s.Stage == "handed" || s.Stage == "consumed") {
			w.Errorf("stage %s has no evidence", s.Stage)
		}
	}
}
