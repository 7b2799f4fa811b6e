package realcli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/realcli"
)

// modFolder is where the product's mod lies in a home.
const modFolder = ".claude/skills/bridge"

// withoutMod takes the mod away, as for a claude that is too old for it.
func (w *world) withoutMod() {
	w.Helper()
	must(w.T, os.RemoveAll(filepath.Join(w.home.Dir, modFolder)))
}

// modThere waits until the session's page says that its mod is there.
func (w *world) modThere(name string) {
	w.Helper()
	w.shown("the mod of "+name, func(s state) bool { return s.peer(name).Transport == "mod" })
}

// entered checks that the request shows the text once, as the user's own prompt.
func (w *world) entered(r realcli.Request, text string) {
	w.Helper()
	if got := prompts(r, text); got != 1 || shows(r, text) != 0 {
		w.Errorf("the model was shown it %d times as a user's message and %d times as mail: %v", got, shows(r, text), r)
	}
}

// TestClaudesModEntersTheOwnersWords: one claude, in the order of a working day.
func TestClaudesModEntersTheOwnersWords(t *testing.T) {
	w := newWorld(t, "p")
	w.install()
	claude := w.open("claude", "p", "❯", realcli.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")
	w.modThere("claude-p")

	w.step("CHT-20 idle: it is a prompt of the user, byte for byte", func(w *world) {
		const text = "Which port does the server use?"
		since := time.Now()
		answer := w.write("claude-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		if !strings.Contains(answer.Detail, "as a prompt of yours") {
			w.Errorf("CHT-03: the answer does not name the way: %q", answer.Detail)
		}
		w.entered(w.arrives(since, "the owner's words at an idle claude", holds(text)), text)
		if got := w.consumed(text).to("claude-p").reached(); got != "accepted durable handed consumed" {
			w.Errorf("it reached the stages %q", got)
		}
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("CHT-09: the receipt says %s", got)
		}
		w.idle("claude-p")
	})
}
