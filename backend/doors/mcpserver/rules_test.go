package mcpserver

import (
	"strings"
	"testing"

	"bridge/backend/core/job"
)

// TestNED_04_NoToolMakesOrRemovesARule: what an agent may call says nothing of standing
// rules, and the one tool by which a question is answered refuses one.
func TestNED_04_NoToolMakesOrRemovesARule(t *testing.T) {
	for _, tool := range (&Server{opts: Options{Jobs: true}}).tools() {
		for argument := range tool.tool.InputSchema.Properties {
			for _, word := range []string{"rule", "match", "always", "folder", "until"} {
				if strings.Contains(argument, word) {
					t.Errorf("%s takes %q", tool.tool.Name, argument)
				}
			}
		}
		if strings.Contains(tool.tool.Name, "rule") {
			t.Errorf("there is the tool %s", tool.tool.Name)
		}
	}
	const answer = `"job":"codex-job-0a1b2c3d","approval_id":"q1","decision":"allow"`
	if _, err := job.ParseMessage([]byte(`{` + answer + `}`)); err != nil {
		t.Fatalf("an answer for once: %v", err)
	}
	for _, more := range []string{`"rule":{"match":"exact","folder":"this"}`, `"rule":true`, `"always":true`, `"from_now_on":true`, `"until":1`} {
		if _, err := job.ParseMessage([]byte(`{` + answer + `,` + more + `}`)); err == nil {
			t.Errorf("an answer with %s is taken", more)
		}
	}
}
