package realcli_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// tell sends what the owner's page sends, and reads the answer.
func (w *world) tell(method, path string, body, answer any) {
	w.Helper()
	raw, err := json.Marshal(body)
	must(w.T, err)
	r, err := http.NewRequestWithContext(soon(w.T), method, w.page.base+path, bytes.NewReader(raw))
	must(w.T, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-bridge", "1")
	response, err := w.page.client.Do(r)
	must(w.T, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.Fatalf("%s %s: %s", method, path, response.Status)
	}
	must(w.T, json.NewDecoder(response.Body).Decode(answer))
}

// keepsPrompts is an owner who is away and wants prompts on the page.
func (w *world) keepsPrompts() {
	w.Helper()
	var settings struct{ AnswerPrompts string }
	w.tell(http.MethodPut, "/api/settings", map[string]string{"answerPrompts": "away"}, &settings)
	if settings.AnswerPrompts != "away" {
		w.Fatalf("the settings are %+v", settings)
	}
	if said := w.bridge("needs", "--away", "on"); !strings.Contains(said, "Away mode is on") {
		w.Fatalf("bridge needs --away on: %s", said)
	}
}

// card waits until the page shows the prompt with that in its detail so.
func (w *world) card(detail, what string, fits func(approval) bool) (found approval) {
	w.Helper()
	w.shown(fmt.Sprintf("the prompt %q to be %s", detail, what), func(s state) bool {
		for _, a := range s.Approvals {
			if strings.Contains(a.Detail, detail) {
				found = a
			}
		}
		return found.ID != "" && fits(found)
	})
	return found
}

// open is a prompt that can be answered.
func isOpen(a approval) bool { return a.State == "asked" && a.OnlyTold == "" }

func is(state, how string) func(approval) bool {
	return func(a approval) bool { return a.State == state && (how == "" || a.Elsewhere == how) }
}

// decides answers a prompt as the owner's page does.
func (w *world) decides(a approval, decision, reason string) {
	w.Helper()
	body := map[string]string{"decision": decision}
	if reason != "" {
		body["reason"] = reason
	}
	var after approval
	w.tell(http.MethodPost, "/api/approvals/"+a.ID, body, &after)
	if after.State == "asked" {
		w.Errorf("answered, it is %+v", after)
	}
}

// made reports whether a command that makes this file in the project ran.
func (w *world) made(name string) bool {
	_, err := os.Stat(filepath.Join(w.home.Project("p"), name))
	return err == nil
}

// makes is a turn that makes a file by a shell command, and what its model reads then.
func (w *world) makes(item asker, name string) {
	w.Helper()
	call := scripted.Call(item.tool, map[string]any{"command": "touch " + name, "description": "make " + name})
	if item.call != nil {
		call = item.call("touch " + name)
	}
	w.model.Script(name, call, scripted.Say("said-after-"+name))
	w.prompt(item, name)
}

// after is the request with the tool's result.
func (w *world) after(name string) scripted.Request {
	w.Helper()
	return w.request("the result of "+name, func(r scripted.Request) bool { return r.Script == name && r.Step == 1 && !r.Aux })
}

// asker is a session in a terminal that asks before it runs a command.
type asker struct {
	prompter
	terminal *scripted.Terminal
	name     string
	tool     string // that runs commands, as its card names it
	dialog   func(screen string) bool

	call  func(command string) scripted.Step // how its model calls that; nil for the usual way
	shell string                             // what a card shows around a command, with %s for it
}

// shows is what a card shows of a command.
func (a asker) shows(command string) string { return fmt.Sprintf(cmp.Or(a.shell, "%s"), command) }

// has reports whether a screen shows that.
func has(text string) func(screen string) bool {
	return func(screen string) bool { return strings.Contains(screen, text) }
}

// answeredOrNot goes through what becomes of the prompts of any session; turnedDown is
// what its own kind does when its owner says no.
func (w *world) answeredOrNot(item asker, turnedDown func(w *world)) {
	w.Helper()
	w.step("NED-02 allowed from the page, while the terminal shows its dialog", func(w *world) {
		w.makes(item, "made-1")
		card := w.card("touch made-1", "open", isOpen)
		if card.Session != item.name || card.Job != "" || card.What != item.tool || card.Detail != item.shows("touch made-1") {
			w.Errorf("the card is %+v", card)
		}
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		w.decides(card, "allow", "")
		w.after("made-1")
		w.card("touch made-1", "applied", is("applied", ""))
		if !w.made("made-1") {
			w.Error("it did not run")
		}
		w.idle(item.name)
	})

	w.step("NED-02 denied with a reason that its model reads", func(w *world) {
		w.makes(item, "made-2")
		w.decides(w.card("touch made-2", "open", isOpen), "deny", "not made-2, \"please\"")
		if r := w.after("made-2"); r.Count("not made-2, \"please\"") != 1 {
			w.Errorf("its model reads %s", r.Text())
		}
		w.card("touch made-2", "applied", is("applied", ""))
		if w.made("made-2") {
			w.Error("it ran")
		}
		w.idle(item.name)
	})

	w.step("NED-02 allowed at the terminal first", func(w *world) {
		w.makes(item, "made-3")
		w.card("touch made-3", "open", isOpen)
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		w.press(item.terminal, scripted.Return, "end of the dialog", func(screen string) bool { return strings.Contains(screen, "said-after-made-3") })
		w.after("made-3")
		w.card("touch made-3", "allowed at the terminal", is("withdrawn", "allowed"))
		if !w.made("made-3") {
			w.Error("it did not run")
		}
		w.idle(item.name)
	})

	w.step("NED-02 turned down at the terminal", turnedDown)

	w.step("NED-02 the broker dies while it waits", func(w *world) {
		w.makes(item, "made-5")
		w.card("touch made-5", "open", isOpen)
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		must(w.T, w.page.kill())
		w.press(item.terminal, scripted.Return, "end of the dialog", func(screen string) bool { return strings.Contains(screen, "said-after-made-5") })
		w.after("made-5")
		if !w.made("made-5") {
			w.Error("it did not run")
		}
	})
}

func TestNED_02_PromptsAndQuestionsOfARealClaude(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.keepsPrompts()
	claude := w.open("claude", "p", "❯", claudeAsks()...)
	w.meet(claude, "claude-p")
	item := asker{prompter: claude, terminal: claude, name: "claude-p", tool: "Bash", dialog: has("Do you want to proceed?")}

	w.choosesOrNot(asker{prompter: claude, terminal: claude, name: "claude-p", tool: "AskUserQuestion", dialog: has("like green")}, "multiSelect", "not-now-please")
	w.idle(item.name)
	w.answeredOrNot(item, func(w *world) {
		w.makes(item, "made-4")
		w.card("touch made-4", "open", isOpen)
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		must(w.T, item.terminal.Type(scripted.Escape))
		w.card("touch made-4", "over", func(a approval) bool {
			return a.State == "withdrawn" && (a.Elsewhere == "stopped" || a.Elsewhere == "answered")
		})
		if w.made("made-4") {
			w.Error("it ran")
		}
	})
}

func TestNED_02_PromptsAndQuestionsOfARealOpenCode(t *testing.T) {
	w := newWorld(t, "p")
	must(t, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) { settings["permission"] = map[string]any{"bash": "ask"} }))
	w.install("opencode")
	w.keepsPrompts()
	opencode := w.openOpenCode("opencode", "p")
	w.meet(opencode, "opencode-p")
	item := asker{prompter: opencode, terminal: opencode.Terminal, name: "opencode-p", tool: "bash", dialog: has("Allow once")}

	w.choosesOrNot(asker{prompter: opencode, terminal: opencode.Terminal, name: "opencode-p", tool: "question", dialog: has("like green")}, "multiple", "")
	w.idle(item.name)
	w.answeredOrNot(item, func(w *world) {
		w.makes(item, "made-4")
		w.card("touch made-4", "open", isOpen)
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		w.press(item.terminal, scripted.Escape, "end of the dialog", func(screen string) bool { return !item.dialog(screen) })
		w.card("touch made-4", "refused at the terminal", is("withdrawn", "refused"))
		if w.made("made-4") {
			w.Error("it ran")
		}
	})
}

// chooses answers what a session's model asks, as the owner's page does.
func (w *world) chooses(a approval, answers ...[]string) {
	w.Helper()
	var after approval
	w.tell(http.MethodPost, "/api/approvals/"+a.ID, map[string]any{"decision": "allow", "answers": answers}, &after)
	if after.State == "asked" {
		w.Errorf("answered, it is %+v", after)
	}
}

// question is one of a model's own, as claude and opencode both take it.
func question(text, several string) map[string]any {
	option := func(label string) map[string]any {
		return map[string]any{"label": label, "description": "like " + label}
	}
	return map[string]any{"question": text, "header": "Colour", several: true, "options": []any{option("red"), option("blue"), option("green")}}
}

// choosesOrNot goes through what becomes of a model's own questions; one.tool asks them.
func (w *world) choosesOrNot(item asker, several, refusal string) {
	w.Helper()
	asks := func(w *world, name string) {
		w.Helper()
		w.model.Script(name, scripted.Call(item.tool, map[string]any{"questions": []any{question("Which of "+name+"?", several)}}), scripted.Say("said-after-"+name))
		w.prompt(item, name)
	}
	w.step("NED-02 what the model asks is answered by the owner's choice", func(w *world) {
		asks(w, "asked-1")
		card := w.card("Which of asked-1?", "open", isOpen)
		if card.What != item.tool || card.Session != item.name {
			w.Errorf("the card is %+v", card)
		}
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		w.chooses(card, []string{"green", "my-own-colour"})
		if r := w.after("asked-1"); r.Count("my-own-colour") != 1 || !strings.Contains(r.Text(), "green, my-own-colour") {
			w.Errorf("its model reads %s", r.Text())
		}
		w.card("Which of asked-1?", "applied", is("applied", ""))
		w.idle(item.name)
	})

	w.step("NED-02 what the model asks is refused", func(w *world) {
		asks(w, "asked-2")
		w.decides(w.card("Which of asked-2?", "open", isOpen), "deny", "not-now-please")
		w.card("Which of asked-2?", "applied", is("applied", ""))
		if refusal != "" {
			if r := w.after("asked-2"); !strings.Contains(r.Text(), refusal) {
				w.Errorf("its model reads %s", r.Text())
			}
		}
		w.idle(item.name)
	})

	w.step("NED-02 what the model asks is answered at the terminal", func(w *world) {
		asks(w, "asked-3")
		w.card("Which of asked-3?", "open", isOpen)
		must(w.T, item.terminal.Until(soon(w.T), "the dialog", item.dialog))
		must(w.T, item.terminal.Type(scripted.Escape))
		w.card("Which of asked-3?", "over", func(a approval) bool {
			return a.State == "withdrawn" && a.Elsewhere != "unclear" && a.Elsewhere != "allowed"
		})
	})
}

// What became of an answer is shown while the turn goes on: the model has not said
// anything after it yet.
func TestNED_02_ARealClaudeProvesAnAnswerWithinTheTurn(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.keepsPrompts()
	claude := w.open("claude", "p", "❯", claudeAsks()...)
	w.meet(claude, "claude-p")
	for _, tt := range []struct {
		name, command, decision, reason string
	}{
		{"denied-1", "touch denied-1", "deny", "because of this"},
		{"denied-2", "touch denied-2", "deny", ""},
		{"failed-1", "cat failed-1", "allow", ""},
	} {
		w.step("NED-02 "+tt.name, func(w *world) {
			gate := "after-" + tt.name
			w.model.Script(tt.name, scripted.Call("Bash", map[string]any{"command": tt.command + " | tee out-" + tt.name + " && test -f no-such-file", "description": "do it"}), scripted.Say("said-"+tt.name).After(gate))
			w.prompt(claude, tt.name)
			w.decides(w.card(tt.command, "open", isOpen), tt.decision, tt.reason)
			w.card(tt.command, "applied", is("applied", ""))
			must(w.T, w.model.AtGate(soon(w.T), gate))
			w.model.Open(gate)
			w.idle("claude-p")
			if ran := w.made("out-" + tt.name); ran != (tt.decision == "allow") {
				w.Errorf("it ran: %t", ran)
			}
		})
	}
}
