package realcli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// TestJOB_01_ARealSessionAsksAndWaits: a real claude asks a real codex, which asks a real
// opencode, and the answer comes as the answer of each call. Then the broker dies while it
// waits: the answer is there once all the same, as the call's or as a message.
func TestJOB_01_ARealSessionAsksAndWaits(t *testing.T) {
	w := newWorld(t, "p")
	w.allowJobs()
	w.install()
	claude := w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")

	w.step("JOB-12 through a job that asks another", func(w *world) {
		w.model.Script("leaf", scripted.Say("the-deep-answer"))
		w.model.Script("middle", scripted.Call(codexTool+"ask_opencode", map[string]any{"prompt": "play script:leaf"}), scripted.Say("passed-on"))
		w.model.Script("asks", scripted.Call(claudeTool+"ask_codex", map[string]any{"prompt": "play script:middle"}), scripted.Say("asked"))
		w.prompt(claude, "asks")
		if r := w.request("the middle one's answer", asks("middle", 1)); !strings.Contains(last(r), "the-deep-answer") {
			w.Errorf("the job is answered %s", last(r))
		}
		var answer struct{ Job, Status, Result string }
		got := last(w.request("the answer", asks("asks", 1)))
		if err := json.Unmarshal([]byte(got[max(0, strings.Index(got, "{")):]), &answer); err != nil || answer.Status != "finished" || answer.Result != "passed-on" {
			w.Errorf("the session is answered %s (%v)", got, err)
		}
		w.idle("claude-p")
		if got := shows(w.afterwards(claude, "look-back"), "passed-on"); got != 0 {
			w.Errorf("what was answered came as %d messages, too", got)
		}
	})

	w.step("JOB-03 the broker is killed while it waits", func(w *world) {
		w.model.Script("slow", scripted.Say("the-late-answer").After("slow-gate"))
		w.model.Script("asks-again", scripted.Call(claudeTool+"ask_codex", map[string]any{"prompt": "play script:slow"}), scripted.Say("asked-again"))
		w.prompt(claude, "asks-again")
		must(w.T, w.model.AtGate(soon(w.T), "slow-gate"))
		must(w.T, w.page.kill())
		w.serve()
		w.model.Open("slow-gate")
		answered := strings.Contains(last(w.request("what the call says", asks("asks-again", 1))), "the-late-answer")
		w.consumed("the-late-answer")
		w.idle("claude-p")
		shown := shows(w.afterwards(claude, "look-again"), "the-late-answer")
		if answered && shown != 0 || !answered && shown != 1 {
			w.Errorf("answered by the call: %t; by messages: %d", answered, shown)
		}
	})
}
