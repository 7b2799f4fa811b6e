package hooks

import (
	"encoding/json"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// What a tool would do is shown as it came: nothing is trimmed or made alike.
func TestRWM_18_APromptIsNotTrimmed(t *testing.T) {
	const command = "\n  rm -rf x \t\u202e\r\n\n"
	call := func(tool string, input map[string]string) []byte {
		data, err := json.Marshal(map[string]any{"session_id": "s1", "hook_event_name": "PermissionRequest", "cwd": "/src", "tool_name": tool, "tool_input": input})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	claude, err := ParseHeldPrompt(bridge.Claude, call("Bash", map[string]string{"command": command}))
	if err != nil || claude.Detail != command {
		t.Errorf("claude's is %q, %v", claude.Detail, err)
	}
	codex, err := ParseReportedPrompt(bridge.Codex, call("Bash", map[string]string{"command": command, "timeout": "1"}))
	if err != nil || codex.Detail != command+"\n"+`timeout: "1"` {
		t.Errorf("codex's is %q, %v", codex.Detail, err)
	}
	changes := map[string]bool{}
	for _, after := range []string{"z", "z\n", "z\n\n", "\nz", " z"} {
		change, err := ParseHeldPrompt(bridge.Claude, call("Write", map[string]string{"file_path": "/a", "content": after}))
		if err != nil || !strings.HasPrefix(change.Detail, "--- /a\n+") || changes[change.Detail] {
			t.Errorf("%q is shown as %q, as another one, %v", after, change.Detail, err)
		}
		changes[change.Detail] = true
	}
}
