package realcli_test

import (
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// TestAChannelThatClaudeDropsLosesNothing: claude is asked to open Bridge's
// channel, and does not: its maker has not permitted it here. It says so to
// nobody and drops what is pushed. The owner's words arrive all the same, once,
// and count as delivered only then.
func TestAChannelThatClaudeDropsLosesNothing(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.withoutMod()
	flag := []string{"--dangerously-load-development-channels", "server:bridge"}
	claude := w.open("claude", "p", "❯", append(scripted.ClaudeCommand("bridge"), flag...)...)
	w.meet(claude, "claude-p")

	arrives := func(w *world, text string, answer outcome) {
		if got := shows(w.request("the words", holds(text)), text); got != 1 {
			w.Errorf("they are shown %d times", got)
		}
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("CHT-09: consumed, the receipt says %s", got)
		}
		w.idle("claude-p")
	}
	w.step("CHT-03 busy: its hooks hand them over at the next tool call", func(w *world) {
		const text = "Which port does the server use?"
		w.model.Script("busy", claudeShell.After("busy-steps"), claudeShell.After("busy-goes-on"), scripted.Say("worked"))
		w.prompt(claude, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-steps"))
		w.shown("claude to be busy", func(s state) bool { return s.peer("claude-p").State == "busy" })
		answer := w.write("claude-p", words{Body: text})
		if strings.Contains(answer.Detail, "channel") {
			w.Errorf("the owner is promised a channel: %q", answer.Detail)
		}
		w.model.Open("busy-steps")
		must(w.T, w.model.AtGate(soon(w.T), "busy-goes-on"))
		if got := shows(w.request("the next step", asks("busy", 1)), text); got != 1 {
			w.Errorf("the next step shows them %d times", got)
		}
		w.model.Open("busy-goes-on")
		arrives(w, text, answer)
	})
	w.step("CHT-03 idle: a wake hook brings them, at once or after the channel", func(w *world) {
		w.waitsOnce()
		const text = "And which protocol?"
		arrives(w, text, w.write("claude-p", words{Body: text}))
	})
	w.step("CHT-06 nothing is shown twice", func(w *world) {
		r := w.afterwards(claude, "look-back")
		for _, text := range []string{"Which port does the server use?", "And which protocol?"} {
			if got := shows(r, text); got != 1 {
				w.Errorf("%d copies of %q", got, text)
			}
		}
	})
}
