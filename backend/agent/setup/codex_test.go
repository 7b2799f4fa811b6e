package setup

import (
	"strings"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/core/hooks"
)

// A hook that codex waits for keeps its dialog away, so the one that tells of a prompt
// is asynchronous; codex that is older than what was tried has none.
func TestNED_02_CodexNeverWaitsForTheHookOfAPrompt(t *testing.T) {
	for version, want := range map[string]bool{"": false, "0.168.9": false, "0.169.0": true, "0.170.1": true} {
		var in Input
		in.CLI = agent.Found{Version: version}
		found := map[string]string{}
		for _, part := range in.codexHooks("/hooks.json").parts {
			event := part.Path[1]
			found[event] = string(part.Value)
			if isAsync := strings.Contains(string(part.Value), `"async":true`); isAsync != (event == hooks.PermissionEvent) {
				t.Errorf("codex %s: the hook %s is %s", version, event, part.Value)
			}
		}
		for _, event := range []string{hooks.PermissionEvent, hooks.InterruptEvent} {
			if (found[event] != "") != want {
				t.Errorf("codex %s: the hook %s is %q", version, event, found[event])
			}
		}
		if found["Stop"] == "" || len(found) < 7 {
			t.Errorf("codex %s: the hooks are %v", version, found)
		}
	}
}
