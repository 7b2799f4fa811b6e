package hooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

func claudeAsks(tool, input string) []byte {
	return fmt.Appendf(nil, `{"session_id":"s1","hook_event_name":"PermissionRequest","cwd":"/src/shop","agent_id":"child-1","agent_type":"Explore","tool_name":%q,"tool_input":%s,"permission_suggestions":[{"type":"setMode"}]}`, tool, input)
}

// What is asked is shown whole: what has no place of its own is listed by its name.
func TestNED_02_APromptShowsExactlyWhatWouldBeDone(t *testing.T) {
	tests := []struct {
		tool, input  string
		kind, detail string
		why          string
		told         bool
	}{
		{"Bash", `{"command":"rm -rf build\nmake","description":"Build anew"}`, AsksCommand, "rm -rf build\nmake", "Build anew", false},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true,"timeout":5}`, AsksCommand, "ls\ndangerouslyDisableSandbox: true\ntimeout: 5", "", false},
		{"Bash", `{"command":["ls"]}`, AsksCommand, "command: [\n  \"ls\"\n]", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x\ny","new_string":"z","replace_all":true}`, AsksChange, "--- /a\n-x\n-y\n+z\nreplace_all: true", "", false},
		{"Write", `{"file_path":"/a","content":"one\n\ntwo\n"}`, AsksChange, "--- /a\n+one\n+\n+two\n+", "", false},
		{"mcp__db__drop", `{"table":"users","if":{"exists":true}}`, AsksTool, "if: {\n  \"exists\": true\n}\ntable: \"users\"", "", false},
		{"Odd", `"words"`, AsksTool, `"words"`, "", false},
		{"ExitPlanMode", `{}`, AsksQuestion, "", "", true},
		{"AskUserQuestion", `{"questions":[]}`, AsksQuestion, "questions: []", "", true},
	}
	for _, tt := range tests {
		got, err := ParseHeldPrompt(bridge.Claude, claudeAsks(tt.tool, tt.input))
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != tt.kind || got.Detail != tt.detail || got.Why != tt.why || (got.OnlyTold != "") != tt.told || got.What != tt.tool {
			t.Errorf("%s %s: %+v, want %s %q", tt.tool, tt.input, got, tt.kind, tt.detail)
		}
		if got.Call.SessionID != "s1" || got.Call.ChildID != "child-1" || got.Call.Cwd != "/src/shop" || got.Call.Event != session.EventAsk {
			t.Errorf("%s: it is of %+v", tt.tool, got.Call)
		}
		ran, err := For(bridge.Claude).ParseHook("PostToolUse", claudeAsks(tt.tool, tt.input))
		if err != nil || ran.Tool != got.Call.Tool || ran.Tool == "" {
			t.Errorf("%s: the call that ran is %q, and %q was asked for (%v)", tt.tool, ran.Tool, got.Call.Tool, err)
		}
	}
}

func TestNED_02_AnotherCallIsNotTheOneThatWasAskedFor(t *testing.T) {
	key := func(tool, input string) string { return session.CallKey(tool, json.RawMessage(input)) }
	same := key("Bash", `{"command":"ls","timeout":1}`)
	if got := key("Bash", ` {"timeout": 1, "command": "l\u0073"}`); got != same {
		t.Error("the order of the members makes it another call")
	}
	for _, other := range []string{key("Bash", `{"command":"ls"}`), key("Bash", `{"command":"ls ","timeout":1}`), key("Sh", `{"command":"ls","timeout":1}`), key("", `{}`)} {
		if other == same {
			t.Error("two calls have one name")
		}
	}
}

func TestNED_02_WhatIsNoPromptIsRefused(t *testing.T) {
	for _, stdin := range []string{``, `{`, `{"session_id":"s1"}`, `{"tool_name":"Bash","tool_input":{}}`} {
		if got, err := ParseHeldPrompt(bridge.Claude, []byte(stdin)); err == nil {
			t.Errorf("%q is read as %+v", stdin, got)
		}
	}
	for _, in := range []PluginPrompt{
		{}, {ID: "per_1", Permission: "bash"}, {Permission: "bash", Call: json.RawMessage(`{"sessionId":"ses_1"}`)}, {ID: "per_1", Call: json.RawMessage(`{"sessionId":"ses_1"}`)},
	} {
		if got, err := ParsePluginPrompt(bridge.OpenCode, in); err == nil {
			t.Errorf("%+v is read as %+v", in, got)
		}
	}
}

func TestNED_02_AnOpenCodePromptShowsExactlyWhatWouldBeDone(t *testing.T) {
	for _, tt := range []struct{ permission, metadata, kind, detail string }{
		{"bash", `{"command":"make clean"}`, AsksCommand, "make clean"},
		{"bash", `{}`, AsksCommand, "p1\np2"},
		{"edit", `{"filepath":"/a","diff":"@@ -1 +1 @@\n-x\n+y","files":[1]}`, AsksChange, "/a\n@@ -1 +1 @@\n-x\n+y"},
		{"external_directory", `{"parentDir":"/etc"}`, AsksTool, "p1\np2\nparentDir: \"/etc\""},
	} {
		got, err := ParsePluginPrompt(bridge.OpenCode, PluginPrompt{
			ID: "per_1", Call: json.RawMessage(`{"sessionId":"ses_1","childId":"ses_2"}`), Permission: Text(tt.permission), Patterns: []string{"p1", "p2"}, Metadata: json.RawMessage(tt.metadata),
		})
		if err != nil || got.Kind != tt.kind || got.Detail != tt.detail || got.What != tt.permission || got.Call.ChildID != "ses_2" {
			t.Errorf("%s %s: %+v, %v; want %q", tt.permission, tt.metadata, got, err, tt.detail)
		}
	}
}

// Only these two shapes of an answer ever leave: nothing lasting is allowed by one.
func TestNED_02_AnAnswerIsForOnceAlone(t *testing.T) {
	for _, allow := range []bool{true, false} {
		out := string(Prompt{Kind: AsksCommand, input: json.RawMessage(`{"command":"ls"}`)}.Decision(allow, "why", nil))
		for _, lasting := range []string{"updatedPermissions", "updatedInput", "interrupt", "always"} {
			if strings.Contains(out, lasting) {
				t.Errorf("%s says %s", out, lasting)
			}
		}
	}
}

func TestNED_02_ACodexPromptIsToldExactly(t *testing.T) {
	for _, tt := range []struct {
		tool, asked, ran  string
		kind, detail, why string
	}{
		{"Bash", `{"command":"make <all>","description":"Build"}`, `{"command":"make <all>"}`, AsksCommand, "make <all>", "Build"},
		{"Bash", `{"command":"ls","timeout":5}`, `{"timeout":5,"command":"ls"}`, AsksCommand, "ls\ntimeout: 5", ""},
		{"apply_patch", `{"command":"*** Begin Patch"}`, `{"command":"*** Begin Patch"}`, AsksChange, "*** Begin Patch", ""},
		{"mcp__probe__echo", `{"text":"hi","description":"mine"}`, `{"text":"hi","description":"mine"}`, AsksTool, "description: \"mine\"\ntext: \"hi\"", ""},
	} {
		got, err := ParseReportedPrompt(bridge.Codex, claudeAsks(tt.tool, tt.asked))
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != tt.kind || got.What != tt.tool || got.Detail != tt.detail || got.Why != tt.why || got.OnlyTold == "" || got.Call.Kind != bridge.Codex {
			t.Errorf("%s %s: %+v", tt.tool, tt.asked, got)
		}
		ran, err := For(bridge.Codex).ParseHook("PostToolUse", claudeAsks(tt.tool, tt.ran))
		if err != nil || ran.Tool != got.Call.Tool || ran.Tool == "" {
			t.Errorf("%s: the call that ran is %q, and %q was asked for (%v)", tt.tool, ran.Tool, got.Call.Tool, err)
		}
	}
	for _, stdin := range []string{``, `{}`, `{"session_id":"s1"}`, `{"tool_name":"Bash","tool_input":{}}`} {
		if got, err := ParseReportedPrompt(bridge.Codex, []byte(stdin)); err == nil {
			t.Errorf("%s is %+v", stdin, got)
		}
	}
}
