package realcli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
)

// TestAStandbyWakesClaude: the first waiting hook takes the words and its end
// wakes nobody. The standby then wakes the session, and it sees them once.
func TestAStandbyWakesClaude(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.withoutMod()
	must(t, w.home.Edit(".claude/settings.json", func(settings map[string]any) {
		for _, group := range settings["hooks"].(map[string]any)["Stop"].([]any) {
			hook := group.(map[string]any)["hooks"].([]any)[0].(map[string]any)
			if line := hook["command"].(string); strings.Contains(line, " Wake ") || strings.HasSuffix(line, " Wake") {
				hook["command"] = line + " 2>/dev/null; exit 0" // what it has to say is lost
			}
		}
	}))
	claude := w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")
	w.waitsOnce()

	const text = "Which port does the server use?"
	since := time.Now()
	answer := w.write("claude-p", words{Body: text})
	w.expect(answer, "queued", "bridge", true)
	s := w.shown("the wake that comes to nothing", func(s state) bool { return s.message(text).to("claude-p").at("woken") != 0 })
	if s.message(text).to("claude-p").at("consumed") != 0 {
		t.Errorf("the first hook woke it after all: %v", s.message(text))
	}
	r := w.arrives(since, "CHT-03 the owner's words by the standby", holds(text))
	if got := shows(r, text); got != 1 || r.Count(text) != 1 {
		t.Errorf("CHT-06: it was shown %d times in an envelope, %d times in all", got, r.Count(text))
	}
	w.consumed(text)
	if got := w.receipt(answer.Receipt); got != "delivered" {
		t.Errorf("CHT-09: consumed, the receipt says %s", got)
	}
	w.idle("claude-p")
	if got := shows(w.afterwards(claude, "look-back"), text); got != 1 {
		t.Errorf("CHT-06: afterwards it was shown %d times", got)
	}
}

// TestAPersonComesBeforeTheWake: claude reads the end of the waiting hook only
// after a person began a turn, and shows the words in its midst. They are not
// shown by a hook as well.
func TestAPersonComesBeforeTheWake(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.withoutMod()
	gate := filepath.Join(t.TempDir(), "gate")
	must(t, syscall.Mkfifo(gate, 0o600))
	must(t, w.home.Edit(".claude/settings.json", func(settings map[string]any) {
		for _, group := range settings["hooks"].(map[string]any)["Stop"].([]any) {
			hook := group.(map[string]any)["hooks"].([]any)[0].(map[string]any)
			if line := hook["command"].(string); strings.HasSuffix(line, " Wake") {
				hook["command"] = line + "; code=$?; cat " + gate + " >&2; exit $code"
			}
		}
	}))
	claude := w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")
	w.waitsOnce()

	const text = "Which port does the server use?"
	answer := w.write("claude-p", words{Body: text})
	w.shown("the words to be given to the hook", func(s state) bool { return s.message(text).to("claude-p").at("handed") != 0 })
	w.model.Script("busy", claudeShell.After("wake-comes"), claudeShell.After("busy-goes-on"), scripted.Say("worked"))
	w.prompt(claude, "busy")
	must(t, w.model.AtGate(soon(t), "wake-comes"))
	if got := w.request("the person's turn", asks("busy", 0)).Count(text); got != 0 {
		t.Errorf("the person's prompt shows it %d times, want the wake to", got)
	}
	if got := w.receipt(answer.Receipt); got != "queued" {
		t.Errorf("CHT-09: not shown yet, the receipt says %s", got)
	}
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	must(t, open.Close())
	w.model.Open("wake-comes")
	must(t, w.model.AtGate(soon(t), "busy-goes-on"))
	w.model.Open("busy-goes-on")
	w.arrives(time.Now(), "CHT-03 the owner's words beside the person's", holds(text))
	w.consumed(text)
	if got := w.receipt(answer.Receipt); got != "delivered" {
		t.Errorf("CHT-09: consumed, the receipt says %s", got)
	}
	w.idle("claude-p")
	if got := shows(w.afterwards(claude, "look-back"), text); got != 1 {
		t.Errorf("CHT-06: afterwards it was shown %d times", got)
	}
}

// TestOwnerReachesAServedOpenCode: an opencode without a screen is reached as
// one with a screen is.
func TestOwnerReachesAServedOpenCode(t *testing.T) {
	w := newWorld(t, "p")
	w.install("opencode")
	opencode, err := w.home.ServeOpenCode(soon(t), w.home.Project("p"))
	must(t, err)
	t.Cleanup(func() { opencode.Close(t.Context()) }) //nolint:errcheck // Close of the home kills what is left
	if got := w.meet(opencode, "opencode-p").SessionID; got != opencode.Session {
		t.Errorf("the session is %q, opencode calls it %q", got, opencode.Session)
	}

	w.step("CHT-07 idle: the plugin starts a turn with it", func(w *world) {
		const text = "Which port does the server use?"
		since := time.Now()
		answer := w.write("opencode-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		r := w.arrives(since, "the owner's words at an idle opencode", holds(text))
		if got := shows(r, text); got != 1 {
			w.Errorf("it was shown %d times", got)
		}
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("CHT-09: consumed, the receipt says %s", got)
		}
		w.idle("opencode-p")
	})

	w.step("CHT-07 CHT-15 busy: it is shown at the next step of the same turn", func(w *world) {
		const text = "And which protocol?"
		w.model.Script("busy", openCodeShell.After("busy-steps"), openCodeShell, scripted.Say("worked"))
		w.prompt(opencode, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-steps"))
		w.write("opencode-p", words{Body: text})
		w.model.Open("busy-steps")
		if got := w.request("the next step", asks("busy", 1)); shows(got, text) != 1 {
			w.Errorf("the next step shows it %d times", shows(got, text))
		}
		w.consumed(text)
		w.idle("opencode-p")
	})
}
