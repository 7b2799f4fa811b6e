package agent

import (
	"encoding/json"
	"testing"

	"bridge/backend/core/bridge"
)

func meta(t *testing.T, raw string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func codexIdentity(meta map[string]any) (sessionID, childID string, ok bool) {
	caller := CallerOf(bridge.Codex, meta)
	return caller.SessionID, caller.ChildID, caller.SessionID != ""
}

func claudeToolUse(meta map[string]any) (toolUseID string, ok bool) {
	caller := CallerOf(bridge.Claude, meta)
	return caller.ToolUseID, caller.ToolUseID != ""
}

func TestCodexIdentity(t *testing.T) {
	const root, child = "01a1f921-4454-7a13-aff4-4ae61ffbae3a", "01a1f921-9999-7a13-aff4-4ae61ffbae3b"
	tests := []struct {
		name, meta, session, child string
		ok                         bool
	}{
		{"root", `{"callId":"call_2_0","threadId":"` + root + `","sessionId":"` + root + `","windowId":"w:0","progressToken":1,
			"x-codex-turn-metadata":{"session_id":"` + root + `","thread_id":"` + root + `"}}`, root, "", true},
		{"child", `{"threadId":"` + child + `","sessionId":"` + root + `",
			"x-codex-turn-metadata":{"session_id":"` + root + `","thread_id":"` + child + `","parent_thread_id":"` + root + `","subagent_kind":"thread_spawn"}}`, root, child, true},
		{"turn metadata alone", `{"x-codex-turn-metadata":{"session_id":"` + root + `","thread_id":"` + child + `"}}`, root, child, true},
		{"thread alone", `{"threadId":"` + root + `"}`, root, "", true},
		{"nothing", `{"progressToken":1}`, "", "", false},
		{"wrong types", `{"threadId":5,"sessionId":{}}`, "", "", false},
		{"not an id", `{"threadId":"two words"}`, "", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			session, child, ok := codexIdentity(meta(t, test.meta))
			if session != test.session || child != test.child || ok != test.ok {
				t.Errorf("got %q, %q, %v", session, child, ok)
			}
		})
	}
	if _, _, ok := codexIdentity(nil); ok {
		t.Error("no meta is no identity")
	}
}

func TestClaudeToolUse(t *testing.T) {
	if id, ok := claudeToolUse(meta(t, `{"claudecode/toolUseId":"toolu_fake_2_0","progressToken":2}`)); id != "toolu_fake_2_0" || !ok {
		t.Errorf("got %q, %v", id, ok)
	}
	for _, raw := range []string{`{}`, `{"claudecode/toolUseId":""}`, `{"claudecode/toolUseId":7}`} {
		if _, ok := claudeToolUse(meta(t, raw)); ok {
			t.Errorf("%s has no tool use id", raw)
		}
	}
}
