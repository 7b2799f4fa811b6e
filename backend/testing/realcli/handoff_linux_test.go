package realcli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// TestJOB_23_ARealSessionHandsItsJobOver: a codex gives work and hands it to a claude that
// does nothing. Claude is woken, has the result, and steers the job; codex has none of it.
func TestJOB_23_ARealSessionHandsItsJobOver(t *testing.T) {
	testkit.Long(t, "two CLIs and a job of a third")
	const ended = "the-parser-is-done"
	w := newWorld(t, "p", "q")
	w.allowJobs()
	w.install()
	w.letSpawn()
	codex := w.open("codex", "p", agents["codex"].ready, scripted.CodexCommand()...)
	claude := w.open("claude", "q", agents["claude"].ready, scripted.ClaudeCommand("bridge")...)
	w.meet(codex, "codex-p")
	w.meet(claude, "claude-q")
	// about is a call of one of Bridge's tools about the job that the session knows of.
	about := func(kind, tool string, args map[string]any) scripted.Step {
		return scripted.CallWith(agents[kind].tool+tool, func(r scripted.Request) any {
			if names := jobName.FindAllString(r.Text(), -1); args["to"] != nil {
				args["jobs"] = names[len(names)-1:]
			} else {
				args["job"] = names[len(names)-1]
			}
			return args
		})
	}

	w.model.Script("work", shell("codex", "true").After("work-goes-on"), scripted.Say(ended))
	w.model.Script("gives",
		scripted.Call(codexTool+"spawn_codex", map[string]any{"prompt": "play script:work"}),
		about("codex", "handoff_subagents", map[string]any{"to": "claude-q", "note": "mind the moon"}),
		about("codex", "message_subagent", map[string]any{"message": "still mine?"}),
		scripted.Say("handed"))
	w.prompt(codex, "gives")
	must(t, w.model.AtGate(soon(t), "work-goes-on"))
	if got := last(w.request("the answer to handoff_subagents", asks("gives", 2))); !strings.Contains(got, "codex-job-") {
		t.Errorf("it answers %s", got)
	}
	if got := last(w.request("the answer to message_subagent", asks("gives", 3))); !strings.Contains(got, "works for claude-q: only claude-q or the owner can steer it") {
		t.Errorf("who handed a job over steers it: %s", got)
	}
	request := w.request("what claude is told", holds("codex-p has handed 1 job over to you"))
	if shows(request, "mind the moon") != 1 {
		t.Errorf("the note is not there: %v", request)
	}
	w.idle("claude-q")

	w.model.Open("work-goes-on")
	result := w.request("the result", holds(ended))
	if shows(result, ended) != 1 || result.Session != request.Session {
		t.Errorf("the result is shown %d times, in the session %s of %s", shows(result, ended), result.Session, request.Session)
	}
	w.consumed(ended)
	w.idle("claude-q")

	w.model.Script("more", scripted.Say("and-more-is-done"))
	w.model.Script("goes-on", about("claude", "message_subagent", map[string]any{"message": "play script:more"}), scripted.Say("gone on"))
	w.prompt(claude, "goes-on")
	if got := last(w.request("the answer to claude's message_subagent", asks("goes-on", 1))); !strings.Contains(got, `"delivery":"continued"`) {
		t.Errorf("the new supervisor's words are answered by %s", got)
	}
	if result := w.request("the second result", holds("and-more-is-done")); result.Session != request.Session {
		t.Errorf("the second result is shown in the session %s", result.Session)
	}
	for name, session := range map[string]prompter{"codex": codex, "claude": claude} {
		r := w.afterwards(session, "look-back-"+name)
		if got, want := shows(r, ended), map[string]int{"codex": 0, "claude": 1}[name]; got != want {
			t.Errorf("%s was shown the result %d times", name, got)
		}
	}
	raw, err := os.ReadFile(filepath.Join(w.home.Dir, ".bridge", "jobs.json"))
	must(t, err)
	var registry struct {
		Jobs []struct {
			Name    string
			History []job.Ownership `json:"ownershipHistory"`
		}
	}
	must(t, json.Unmarshal(raw, &registry))
	if len(registry.Jobs) != 1 || len(registry.Jobs[0].History) != 1 || registry.Jobs[0].History[0].From != "codex-p" || registry.Jobs[0].History[0].To != "claude-q" {
		t.Errorf("jobs.json has %+v", registry.Jobs)
	}
}
