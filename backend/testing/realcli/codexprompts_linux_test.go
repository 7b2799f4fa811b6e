package realcli_test

import (
	"net/http"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// codexAsker is a codex whose model runs commands outside of its sandbox.
func codexAsker(terminal *scripted.Terminal, name string) asker {
	return asker{
		prompter: terminal, terminal: terminal, name: name, tool: "shell", dialog: has("Would you like to run"), shell: "/bin/bash -lc '%s'",
		call: func(command string) scripted.Step {
			return scripted.Call("exec_command", map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"})
		},
	}
}

func TestNED_02_PromptsOfARealCodex(t *testing.T) {
	w := newWorld(t, "p")
	must(t, w.home.CodexAsks())
	must(t, w.home.UseCodexDaemon())
	w.install("codex")
	w.keepsPrompts()
	codex := w.open("codex", "p", "›", "codex")
	w.meet(codex, "codex-p")
	asker := codexAsker(codex, "codex-p")

	w.answeredOrNot(asker, func(w *world) {
		w.makes(asker, "made-4")
		w.card("touch made-4", "open", isOpen)
		must(w.T, asker.terminal.Until(soon(w.T), "the dialog", asker.dialog))
		must(w.T, asker.terminal.Type(scripted.Escape))
		w.card("touch made-4", "answered at the terminal", is("withdrawn", "answered"))
		if w.made("made-4") {
			w.Error("it ran")
		}
	})
}

// Without its background server codex takes no answer from elsewhere while its dialog
// shows: the card only tells.
func TestNED_02_PromptsOfARealCodexAloneAreOnlyTold(t *testing.T) {
	w := newWorld(t, "p")
	must(t, w.home.CodexAsks())
	w.install("codex")
	w.keepsPrompts()
	codex := w.open("codex", "p", "›", scripted.CodexCommand()...)
	w.meet(codex, "codex-p")
	asker := codexAsker(codex, "codex-p")
	asker.tool = "exec_command"
	told := func(w *world, name string) approval {
		w.Helper()
		w.makes(asker, name)
		card := w.card("touch "+name, "told", func(a approval) bool { return a.State == "asked" && a.OnlyTold != "" })
		if card.Session != asker.name || card.What != "Bash" || card.Detail != "touch "+name {
			w.Errorf("the card is %+v", card)
		}
		if said := w.bridge("needs"); !strings.Contains(said, "Answer it in the terminal: ") || strings.Contains(said, "bridge approve") {
			w.Errorf("bridge needs: %s", said)
		}
		must(w.T, codex.Until(soon(w.T), "the dialog", asker.dialog))
		return card
	}

	w.step("NED-02 the terminal allows", func(w *world) {
		told(w, "made-1")
		w.press(codex, scripted.Return, "end of the dialog", has("said-after-made-1"))
		w.card("touch made-1", "allowed at the terminal", is("withdrawn", "allowed"))
		if !w.made("made-1") {
			w.Error("it did not run")
		}
		w.idle(asker.name)
	})

	w.step("NED-02 the terminal breaks off", func(w *world) {
		told(w, "made-2")
		must(w.T, codex.Type(scripted.Escape))
		w.card("touch made-2", "turned down", is("withdrawn", "stopped"))
		if w.made("made-2") {
			w.Error("it ran")
		}
		w.idle(asker.name)
	})

	w.step("NED-02 the broker dies while it waits", func(w *world) {
		told(w, "made-3")
		must(w.T, w.page.kill())
		w.press(codex, scripted.Return, "end of the dialog", has("said-after-made-3"))
		if !w.made("made-3") {
			w.Error("it did not run")
		}
	})
}

func TestNED_02_ARealCodexIsLeftAloneUntilItsOwnerLooks(t *testing.T) {
	testkit.Long(t, "the prompts of a codex are tried in two other tests, and this waits")
	w := newWorld(t, "p")
	must(t, w.home.CodexAsks())
	must(t, w.home.UseCodexDaemon())
	w.install("codex")
	w.keepsPrompts()
	codex := w.open("codex", "p", "›", "codex")
	w.meet(codex, "codex-p")
	asker := codexAsker(codex, "codex-p")

	w.step("NED-02 another broker shows what waits since before it", func(w *world) {
		w.makes(asker, "made-1")
		before := w.card("touch made-1", "open", isOpen)
		must(w.T, codex.Until(soon(w.T), "the dialog", asker.dialog))
		must(w.T, w.page.kill())
		w.serve()
		card := w.card("touch made-1", "open again", isOpen)
		if card.ID == before.ID {
			w.Errorf("it is the card %s of the broker that died", card.ID)
		}
		if screen := codex.Screen(); !asker.dialog(screen) || w.made("made-1") {
			w.Errorf("left alone, it ran is %t:\n%s", w.made("made-1"), screen)
		}
		w.decides(card, "allow", "")
		w.after("made-1")
		w.card("touch made-1", "applied", is("applied", ""))
		if !w.made("made-1") {
			w.Error("it did not run")
		}
		w.idle(asker.name)
	})

	w.step("NED-02 no page shows it, then one does, and is closed", func(w *world) {
		var settings struct{ AnswerPrompts string }
		w.tell(http.MethodPut, "/api/settings", map[string]string{"answerPrompts": "always"}, &settings)
		w.bridge("needs", "--away", "off")
		w.makes(asker, "made-2")
		must(w.T, codex.Until(soon(w.T), "the dialog", asker.dialog))
		s, _ := w.page.state(w.T, soon(w.T))
		for _, a := range s.Approvals {
			if strings.Contains(a.Detail, "made-2") {
				w.Errorf("with no page open there is the card %+v", a)
			}
		}
		w.card("touch made-2", "open, once a page is", isOpen)
		w.press(codex, scripted.Return, "end of the dialog", has("said-after-made-2")) // no page is open
		w.card("touch made-2", "allowed at the terminal", is("withdrawn", "allowed"))
		w.bridge("needs", "--away", "on")
		w.idle(asker.name)
	})

	w.step("NED-02 a tool of a server", func(w *world) {
		for name, decision := range map[string]string{"tool-1": "allow", "tool-2": "deny"} {
			w.model.Script(name, scripted.Call(codexTool+"spawn_codex", map[string]any{"task": "do " + name, "mode": "read"}), scripted.Say("said-after-"+name))
			w.prompt(asker, name)
			card := w.card("do "+name, "open", isOpen)
			if card.What != "bridge/spawn_codex" {
				w.Errorf("the card is %+v", card)
			}
			w.decides(card, decision, "")
			w.after(name)
			w.card("do "+name, "applied", is("applied", ""))
			w.idle(asker.name)
		}
	})

	w.step("NED-02 a change of files", func(w *world) {
		patch := "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: changed-1\n+a line of it\n*** End Patch\nEOF\n"
		w.model.Script("changed-1", scripted.Call("exec_command", map[string]any{"cmd": patch}), scripted.Say("said-after-changed-1"))
		w.prompt(asker, "changed-1")
		isChange := func(a approval) bool { return a.What == "apply_patch" && a.OnlyTold != "" }
		w.card("", "told", isChange) // a change is shown only to who listened when it began
		must(w.T, codex.Until(soon(w.T), "the dialog", has("Would you like to make the following edits")))
		w.press(codex, scripted.Return, "end of the dialog", has("said-after-changed-1"))
		w.card("", "allowed at the terminal", func(a approval) bool { return isChange(a) && is("withdrawn", "allowed")(a) })
		if !w.made("changed-1") {
			w.Error("nothing was changed")
		}
	})
}
