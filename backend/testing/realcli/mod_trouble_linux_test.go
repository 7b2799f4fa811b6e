package realcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// modGate stands between the product and its mod: it holds a prompt back until
// the test lets it go, so that anything may happen in between.
const modGate = `#!/bin/sh
case "$*" in *--report*)
	[ -e %[2]s.lost ] && exit 0
	exec %[1]s "$@" ;;
esac
echo started >>%[2]s.log
%[1]s "$@" | while IFS= read -r line; do
	case "$line" in *'"prompt"'*) cat %[2]s >/dev/null ;; esac
	printf '%%s\n' "$line"
done
`

// promptGate holds a typed prompt that says so back, before its turn begins.
const promptGate = `#!/bin/sh
if grep -q 'holds its turn'; then cat %s >/dev/null; fi
exit 0
`

// gates are the places where the test stops what is on its way.
type gates struct {
	w           *world
	mod, prompt string // named pipes
}

// gated puts both gates into the home. A pipe that nobody reads holds nothing.
func (w *world) gated() gates {
	w.Helper()
	g := gates{w, filepath.Join(w.home.Root, "mod-gate"), filepath.Join(w.home.Root, "prompt-gate")}
	for _, pipe := range []string{g.mod, g.prompt} {
		must(w.T, syscall.Mkfifo(pipe, 0o600))
	}
	through, holding := filepath.Join(w.home.Bin, "bridge-gate"), filepath.Join(w.home.Bin, "prompt-gate")
	must(w.T, testkit.WriteProgram(through, fmt.Appendf(nil, modGate, filepath.Join(w.home.Bin, "bridge"), g.mod), 0o700))
	must(w.T, testkit.WriteProgram(holding, fmt.Appendf(nil, promptGate, g.prompt), 0o700))
	w.changeModule(func(module string) string {
		return strings.Replace(module, `["`+filepath.Join(w.home.Bin, "bridge")+`"`, `["`+through+`"`, 1)
	})
	must(w.T, w.home.Edit(".claude/settings.json", func(settings map[string]any) {
		hooks := settings["hooks"].(map[string]any)
		hooks["UserPromptSubmit"] = append(hooks["UserPromptSubmit"].([]any), map[string]any{
			"hooks": []any{map[string]any{"type": "command", "command": holding, "timeout": 60}},
		})
	}))
	return g
}

// changeModule writes the mod's module anew, as an upgrade does.
func (w *world) changeModule(change func(string) string) {
	w.Helper()
	module := filepath.Join(w.home.Dir, modFolder, "hooks", "register.js")
	raw, err := os.ReadFile(module)
	must(w.T, err)
	changed := change(string(raw))
	if changed == string(raw) {
		w.Fatal("the module was to change")
	}
	must(w.T, os.WriteFile(module+".new", []byte(changed), 0o600))
	must(w.T, os.Rename(module+".new", module))
}

// loads counts how often a mod has started its child.
func (g gates) loads() int {
	g.w.Helper()
	raw, err := os.ReadFile(g.mod + ".log")
	must(g.w.T, err)
	return strings.Count(string(raw), "started")
}

// open lets go what waits at a gate; it waits for that to be there.
func (g gates) open(pipe string) {
	g.w.Helper()
	opened := make(chan error, 1)
	go func() { opened <- os.WriteFile(pipe, []byte("go\n"), 0) }()
	select {
	case err := <-opened:
		must(g.w.T, err)
	case <-soon(g.w.T).Done():
		g.w.Fatalf("nothing waits at %s", pipe)
	}
}

// keepOpen lets go whatever comes to a gate until stop is called.
func (g gates) keepOpen(pipe string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if gate, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // somebody waits
				gate.WriteString("go\n") //nolint:errcheck // who waits may have been ended
				gate.Close()
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// isHeld waits until the words are handed over and at the gate.
func (g gates) isHeld(name, text string) {
	g.w.Helper()
	g.w.shown("the words to be on their way", func(s state) bool {
		return strings.HasSuffix(s.message(text).to(name).reached(), "handed")
	})
}

// types types a prompt whose turn is held back before it begins.
func (g gates) types(w *world, claude *scripted.Terminal, script string) {
	w.Helper()
	line := "this holds its turn back, script:" + script
	w.types(claude, line)
	w.press(claude, scripted.Return, "prompt", func(screen string) bool { return strings.Contains(screen, "esc to interrupt") })
}

// queued brings words into claude's own queue behind a turn that a person began at
// the same moment. It ends with that turn under way, held by the model at the gate
// SCRIPT-ends.
func (g gates) queued(w *world, claude *scripted.Terminal, text, script string) outcome {
	w.Helper()
	w.model.Script(script, scripted.Say("worked").After(script+"-ends"), scripted.Say("went on"))
	answer := w.write("claude-p", words{Body: text})
	g.isHeld("claude-p", text)
	g.types(w, claude, script)
	g.open(g.mod)
	must(w.T, claude.Until(soon(w.T), "the words in its queue", func(screen string) bool { return strings.Contains(screen, text) }))
	g.open(g.prompt)
	must(w.T, w.model.AtGate(soon(w.T), script+"-ends"))
	return answer
}

// TestClaudesModInTrouble: whatever comes between, each of the owner's words comes
// once, and its receipt is right.
func TestClaudesModInTrouble(t *testing.T) {
	testkit.Long(t, "the real claude is brought into one trouble after the other")
	w := newWorld(t, "p")
	w.install("claude")
	g := w.gated()
	claude := w.open("claude", "p", "❯", claudeAsks()...)
	w.meet(claude, "claude-p")
	w.modThere("claude-p")
	said := map[string]int{} // how often each was to be a prompt

	w.step("CHT-20 queued behind a person's turn: it enters after it", func(w *world) {
		const text = "queued and entered"
		said[text] = 1
		answer := g.queued(w, claude, text, "person")
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("in the queue the receipt says %s", got)
		}
		w.model.Open("person-ends")
		w.entered(w.request("the words", holds(text)), text)
		w.done("claude-p", text, answer)
	})

	w.step("CHT-20 Esc drops it: mail again with the reason, and never a prompt", func(w *world) {
		const text = "queued and dropped"
		answer := g.queued(w, claude, text, "escaped")
		must(w.T, claude.Type(scripted.Escape))
		w.shown("the reason", func(s state) bool {
			return strings.Contains(s.message(text).to("claude-p").evidence("woken"), "removed from the queue")
		})
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("dropped, the receipt says %s", got)
		}
		w.model.Open("escaped-ends")
		must(w.T, claude.Type(scripted.ControlU)) // claude puts the broken-off prompt back
		w.afterwards(claude, "after-esc")         // its hooks show what waits
		w.consumed(text)
		w.idle("claude-p")
		if r := w.afterwards(claude, "look-for-it"); shows(r, text) != 1 || prompts(r, text) != 0 {
			w.Errorf("it is shown as mail %d times and as a prompt %d times", shows(r, text), prompts(r, text))
		}
		w.idle("claude-p")
	})

	w.step("CHT-20 a module written anew while it is queued, and no report: its own trace tells", func(w *world) {
		const text = "queued and reloaded"
		said[text] = 1
		loads := g.loads()
		answer := g.queued(w, claude, text, "reloads")
		must(w.T, os.WriteFile(g.mod+".lost", nil, 0o600))
		w.changeModule(func(module string) string { return module + "// a newer one\n" })
		w.model.Open("reloads-ends")
		w.entered(w.request("the words", holds(text)), text)
		must(w.T, claude.Until(soon(w.T), "the reload", func(string) bool { return g.loads() > loads }))
		w.done("claude-p", text, answer)
		s, _ := w.page.state(w.T, soon(w.T))
		if got := s.message(text).to("claude-p").evidence("consumed"); !strings.Contains(got, "as a prompt") || strings.Contains(got, "its mod") {
			w.Errorf("its receipt rests on %q", got)
		}
		must(w.T, os.Remove(g.mod+".lost"))
		w.modThere("claude-p")
	})

	w.step("CHT-20 the broker is killed in between", func(w *world) {
		const text = "over two brokers"
		said[text] = 1
		w.write("claude-p", words{Body: text})
		g.isHeld("claude-p", text)
		must(w.T, w.page.kill())
		w.serve()
		w.modThere("claude-p")
		g.open(g.mod)
		w.entered(w.request("the words", holds(text)), text)
		w.consumed(text)
		w.idle("claude-p")
	})

	w.step("CHT-20 another conversation before it comes: it enters that one", func(w *world) {
		const text = "for whoever is there"
		said[text] = 0 // that conversation is left again
		before := w.peer("claude-p").SessionID
		answer := w.write("claude-p", words{Body: text})
		g.isHeld("claude-p", text)
		w.goes(claude, "claude-p", "/clear")
		stop := g.keepOpen(g.mod)
		r := w.request("the words", holds(text))
		stop()
		w.entered(r, text)
		if r.Session == before {
			w.Error("it came into the conversation that was left")
		}
		w.done("claude-p", text, answer)
		w.goes(claude, "claude-p", "/resume "+before)
	})

	w.step("CHT-20 nothing came twice", func(w *world) {
		r := w.afterwards(claude, "look-back")
		for text, want := range said {
			if got := prompts(r, text); got != want || shows(r, text) != 0 {
				w.Errorf("%q: %d copies as a prompt, want %d, and %d as mail", text, got, want, shows(r, text))
			}
		}
	})

	w.step("CHT-20 claude is left with it in its queue: it comes when the conversation is resumed", func(w *world) {
		const text = "written to one who leaves"
		conversation := w.peer("claude-p").SessionID
		g.queued(w, claude, text, "leaves")
		must(w.T, claude.Close(soon(w.T)))
		w.shown("claude to be gone", func(s state) bool { return s.peer("claude-p").ID == "" })
		w.model.Open("leaves-ends")
		defer g.keepOpen(g.mod)()
		claude = w.open("claude-again", "p", "❯", claudeAsks("--resume", conversation)...)
		w.afterwards(claude, "is-back")
		w.consumed(text)
		w.idle("claude-p")
		if r := w.afterwards(claude, "at-last"); prompts(r, text)+shows(r, text) != 1 {
			w.Errorf("it came %d times as a prompt and %d times as mail", prompts(r, text), shows(r, text))
		}
	})
}
