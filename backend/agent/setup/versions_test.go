package setup

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
)

func TestMSG_11_NothingIsWrittenForAnOpenCodeOfAnotherMajorVersion(t *testing.T) {
	for version, printed := range map[string]string{"2.0.3": "opencode v2.0.3 (linux-x64)", "0.15.9": "0.15.9", "2.0": "2.0"} {
		t.Run(version, func(t *testing.T) {
			p := newPerson(t, map[string]string{".config/opencode/opencode.json": "{}\n"})
			found, err := agent.Detect(t.Context(), bridge.OpenCode, agent.Lookup{
				Env: func(string) string { return "" }, Configured: program(t, filepath.Join(t.TempDir(), "opencode"), "echo '"+printed+"'"),
			})
			if err != nil || found.Version != version {
				t.Fatalf("found %+v, %v", found, err)
			}
			p.in.CLI = found
			plan, err := connectors[bridge.OpenCode].PlanInstall(t.Context(), p.in)
			if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "opencode "+version) || len(plan.Edits) != 0 {
				t.Errorf("a plan of %d edits, %v", len(plan.Edits), err)
			}
		})
	}
}

// An opencode that became another major version is still taken back.
func TestMSG_11_WhatWasConnectedIsTakenBackWhateverTheVersionIs(t *testing.T) {
	p := newPerson(t, nil)
	before := len(p.tree())
	p.install(bridge.OpenCode)
	p.in.CLI.Version = "2.0.0"
	p.uninstall(bridge.OpenCode)
	if after := p.tree(); len(after) != before {
		t.Errorf("left behind: %v", after)
	}
}

// A claude that was not seen to ask by a hook while its terminal asks, too, is given
// none: its prompts could be kept from the terminal.
func TestNED_02_OnlyAClaudeThatAsksBesideItsTerminalIsGivenTheHook(t *testing.T) {
	for version, want := range map[string]int{"": 0, "2.1.328": 0, "2.1.329": 1, "2.2.0": 1} {
		p := newPerson(t, nil)
		p.in.CLI.Version = version
		p.install(bridge.Claude)
		settings := p.get(".claude/settings.json")
		if got := strings.Count(settings, "claude PermissionRequest"); got != want {
			t.Errorf("claude %q: %d hooks, want %d\n%s", version, got, want, settings)
		}
		if want == 1 && !strings.Contains(settings, `"timeout": 3600`) {
			t.Errorf("claude %q: the hook has no hour to wait\n%s", version, settings)
		}
	}
}

// hooksOf are the commands of one event's hooks in claude's settings, with whether the
// turn waits for them.
func hooksOf(t *testing.T, settings, event string) (found []hookEntry) {
	t.Helper()
	var file struct{ Hooks map[string][]hookGroup }
	if err := json.Unmarshal([]byte(settings), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Hooks[event] {
		found = append(found, group.Hooks...)
	}
	return found
}

// What proves the end of a prompt comes with the prompts' hook, and to an installation
// that has no such hooks yet; the turn does not wait for the one that ends each answer.
func TestNED_02_MSG_11_WhatProvesAnAnswerIsInstalledAndTakenBack(t *testing.T) {
	for _, older := range []string{"2.1.328", "taken out"} {
		p := newPerson(t, nil)
		before := p.tree()
		p.in.CLI.Version = "2.1.329"
		if older != "taken out" {
			p.in.CLI.Version = older
		}
		p.install(bridge.Claude)
		if older == "taken out" {
			settings := map[string]any{}
			if err := json.Unmarshal([]byte(p.get(".claude/settings.json")), &settings); err != nil {
				t.Fatal(err)
			}
			events := settings["hooks"].(map[string]any)
			delete(events, hooks.FailedEvent)
			delete(events, hooks.BatchEvent)
			p.put(".claude/settings.json", string(encode(settings)))
		}
		p.in.CLI.Version = "2.1.329"
		plan := p.install(bridge.Claude)
		if at := slices.IndexFunc(plan.Edits, func(e Edit) bool { return e.Path == filepath.Join(p.in.Home, ".claude", "settings.json") }); at < 0 || strings.Contains(string(plan.Edits[at].Before), hooks.BatchEvent) {
			t.Errorf("%s: the plan is %+v", older, plan.Edits)
		}
		settings := p.get(".claude/settings.json")
		for event, isAsync := range map[string]bool{hooks.FailedEvent: false, hooks.BatchEvent: true} {
			commands := hooksOf(t, settings, event)
			if len(commands) != 1 || commands[0].Async != isAsync || commands[0].Timeout != 5 || !strings.Contains(commands[0].Command, "claude "+event) {
				t.Errorf("%s: the hooks of %s are %+v", older, event, commands)
			}
		}
		if again := p.install(bridge.Claude); !again.Empty() {
			t.Errorf("%s: installing again changes something: %+v", older, again.Edits)
		}
		p.uninstall(bridge.Claude)
		if diff := cmp.Diff(before, p.tree()); diff != "" && older != "taken out" {
			t.Errorf("%s: taken back (-before +after)\n%s", older, diff)
		}
		if _, left := p.tree()[".claude/settings.json"]; left && strings.Contains(p.get(".claude/settings.json"), hooks.BatchEvent) {
			t.Errorf("%s: it was not taken back: %s", older, p.get(".claude/settings.json"))
		}
	}
}
