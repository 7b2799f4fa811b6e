package hooks

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestQUI_02_WhichCallsAreWorkBesideBridgesOwnTools(t *testing.T) {
	for _, tt := range []struct {
		kind         bridge.AgentKind
		event, stdin string
		want         bool
	}{
		{bridge.Claude, "PostToolUse", `{"session_id":"s","tool_name":"Bash","tool_input":{}}`, true},
		{bridge.Claude, "PostToolUse", `{"session_id":"s","tool_name":"mcp__other__send","tool_input":{}}`, true},
		{bridge.Claude, "PostToolUse", `{"session_id":"s","tool_name":"mcp__bridge__send","tool_input":{}}`, false},
		{bridge.Claude, "PostToolUse", `{"session_id":"s"}`, false},
		{bridge.Claude, "PreToolUse", `{"session_id":"s","tool_name":"Bash"}`, false},
		{bridge.Claude, "UserPromptSubmit", `{"session_id":"s","tool_name":"Bash","prompt":"x"}`, false},
		{bridge.Codex, "PostToolUse", `{"session_id":"s","tool_name":"shell","tool_input":{}}`, true},
		{bridge.Codex, "PostToolUse", `{"session_id":"s","tool_name":"mcp__bridge__inbox","tool_input":{}}`, false},
		{bridge.OpenCode, "tool.execute.after", `{"sessionId":"s","toolUseId":"c","tool":"bash"}`, true},
		{bridge.OpenCode, "tool.execute.after", `{"sessionId":"s","toolUseId":"c","tool":"bridge_send"}`, false},
		{bridge.OpenCode, "tool.execute.after", `{"sessionId":"s","toolUseId":"c"}`, false}, // a plugin of before
		{bridge.OpenCode, "tool.execute.before", `{"sessionId":"s","toolUseId":"c","tool":"bash"}`, false},
		{bridge.Antigravity, "PreInvocation", `{"conversationId":"s"}`, false}, // before each answer of the model
	} {
		call, err := For(tt.kind).ParseHook(tt.event, []byte(tt.stdin))
		if err != nil || call.Works != tt.want {
			t.Errorf("%s %s %s: %t, %v", tt.kind, tt.event, tt.stdin, call.Works, err)
		}
	}
}
