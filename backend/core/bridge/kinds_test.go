package bridge

import (
	"slices"
	"strings"
	"testing"
)

func TestKND_07_EachKindHasItsTraits(t *testing.T) {
	seen := map[string]AgentKind{}
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			traits := TraitsOf(kind)
			for _, name := range []string{"kind " + string(traits.Kind), "program " + traits.Program, "package " + traits.Package} {
				if other, taken := seen[name]; taken && !strings.HasSuffix(name, " ") {
					t.Errorf("%s is that of %s, too", name, other)
				}
				seen[name] = kind
			}
			for part, is := range map[string]bool{
				"a name of its own":                       kind != Owner && CheckName(string(kind)) == nil && strings.ToLower(string(kind)) == string(kind),
				"a program":                               traits.Program != "",
				"a name for people":                       traits.Title != "",
				"a phrase about prompts":                  traits.Prompts.Place != "",
				"a phrase about jobs":                     traits.Jobs.Offer != "",
				"both tested versions, or none":           (traits.Tried[0] == "") == (traits.Tried[1] == ""),
				"a tested version to compare with":        !traits.MajorOnly || traits.Tried[1] != "",
				"a default folder for a variable":         traits.Data.Variable == "" || len(traits.Data.Default) > 0,
				"a folder of the registry":                !traits.Registry || len(traits.Data.Default) > 0,
				"a registry that shows hidden dialogs":    !traits.Prompts.ChildHidden || traits.Registry,
				"a command of the background server":      !traits.BackgroundServer || len(traits.Serves) > 0,
				"a member with the id of the session":     traits.Hooks.Input.Session != "",
				"an event at which mail comes":            slices.ContainsFunc(traits.Hooks.Events, func(f HookFormat) bool { return f.Answer != NoAnswer }),
				"events of different names":               !hasTwice(traits.Hooks.Events),
				"a hook that waits, for its waker":        (traits.Waker == HookWaker) == hasTask(traits, TaskWaitForMail),
				"how its MCP server starts again":         traits.MCP.Restart != "",
				"a terminal whose conversations are told": !traits.SharedServer || traits.Terminal == TerminalOfPlugin,
			} {
				if !is {
					t.Errorf("%s lacks %s", kind, part)
				}
			}
		})
	}
	for _, kind := range []AgentKind{Owner, "acp", ""} {
		if got := TraitsOf(kind); got.Kind != "" || got.Program != "" {
			t.Errorf("%q has the traits of %s", kind, got.Kind)
		}
	}
}

func hasTask(traits Traits, task HookTask) bool {
	return slices.ContainsFunc(traits.Hooks.Events, func(f HookFormat) bool { return f.Task == task })
}

func hasTwice(events []HookFormat) bool {
	seen := map[string]bool{}
	for _, event := range events {
		if seen[event.Name] {
			return true
		}
		seen[event.Name] = true
	}
	return false
}

func TestKND_07_AKindIsParsedByItsName(t *testing.T) {
	for _, kind := range Kinds() {
		if got, err := ParseKind(string(kind)); got != kind || err != nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
	_, err := ParseKind("owner")
	if CodeOf(err) != Invalid || !strings.HasSuffix(err.Error(), `unknown agent kind "owner": use claude, codex, opencode or antigravity`) {
		t.Errorf("got %v", err)
	}
}

// TestKND_07_APropertyIsThatOfItsKinds holds the properties: nothing else fails at once for
// each one that is lost.
func TestKND_07_APropertyIsThatOfItsKinds(t *testing.T) {
	for _, tt := range []struct {
		property string
		has      func(Traits) bool
		want     []AgentKind
	}{
		{"Channel", func(t Traits) bool { return t.Channel }, []AgentKind{Claude}},
		{"Mod", func(t Traits) bool { return t.Mod }, []AgentKind{Claude}},
		{"Registry", func(t Traits) bool { return t.Registry }, []AgentKind{Claude}},
		{"SessionVariable", func(t Traits) bool { return t.MCP.SessionVariable != "" }, []AgentKind{Claude}},
		{"FolderVariable", func(t Traits) bool { return t.MCP.FolderVariable != "" }, []AgentKind{Claude}},
		{"Caller.ToolUse", func(t Traits) bool { return len(t.MCP.Caller.ToolUse) > 0 }, []AgentKind{Claude}},
		{"Caller.Session", func(t Traits) bool { return len(t.MCP.Caller.Session) > 0 }, []AgentKind{Codex}},
		{"HookWaker", func(t Traits) bool { return t.Waker == HookWaker }, []AgentKind{Claude}},
		{"QueueWaker", func(t Traits) bool { return t.Waker == QueueWaker }, []AgentKind{Codex}},
		{"PluginWaker", func(t Traits) bool { return t.Waker == PluginWaker }, []AgentKind{OpenCode}},
		{"TaskHoldPrompt", func(t Traits) bool { return hasTask(t, TaskHoldPrompt) }, []AgentKind{Claude}},
		{"TaskReportPrompt", func(t Traits) bool { return hasTask(t, TaskReportPrompt) }, []AgentKind{Codex}},
		{"ProcessVariable", func(t Traits) bool { return t.Hooks.ProcessVariable != "" }, []AgentKind{Claude}},
		{"HeadlessVariable", func(t Traits) bool { return t.Hooks.HeadlessVariable != "" }, []AgentKind{Claude}},
		{"BackgroundServer", func(t Traits) bool { return t.BackgroundServer }, []AgentKind{Codex}},
		{"SharedServer", func(t Traits) bool { return t.SharedServer }, []AgentKind{OpenCode}},
		{"TerminalOfServers", func(t Traits) bool { return t.Terminal == TerminalOfServers }, []AgentKind{Codex}},
		{"TerminalOfPlugin", func(t Traits) bool { return t.Terminal == TerminalOfPlugin }, []AgentKind{OpenCode}},
		{"MajorOnly", func(t Traits) bool { return t.MajorOnly }, []AgentKind{OpenCode}},
		{"Free", func(t Traits) bool { return t.Prompts.Free }, []AgentKind{OpenCode}},
		{"HooksShowOutcome", func(t Traits) bool { return t.Prompts.HooksShowOutcome }, []AgentKind{Claude}},
		{"ChildHidden", func(t Traits) bool { return t.Prompts.ChildHidden }, []AgentKind{Claude}},
		{"RefusesAll", func(t Traits) bool { return t.Prompts.RefusesAll }, []AgentKind{OpenCode}},
		{"Pattern", func(t Traits) bool { return t.Prompts.Pattern }, []AgentKind{OpenCode}},
		{"Since", func(t Traits) bool { return t.Jobs.Since != "" }, []AgentKind{Antigravity}},
		{"OwnRulesForEdit", func(t Traits) bool { return t.Jobs.OwnRulesForEdit }, []AgentKind{Claude}},
	} {
		var have []AgentKind
		for _, kind := range Kinds() {
			if tt.has(TraitsOf(kind)) {
				have = append(have, kind)
			}
		}
		if !slices.Equal(have, tt.want) {
			t.Errorf("%s is that of %v, want %v", tt.property, have, tt.want)
		}
	}
}
