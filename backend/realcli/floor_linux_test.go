package realcli_test

import (
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/bridge"
	"bridge/backend/job"
)

// TestSEC_03_WhatIsAllowedStaysInTheSandbox has real CLIs ask about a command that writes
// outside of the job's folder, and allows it: either the sandbox stops it, or the question
// said that it may leave the sandbox, and so was for the owner alone.
func TestSEC_03_WhatIsAllowedStaysInTheSandbox(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for kind, leaves := range map[bridge.AgentKind]bool{bridge.Claude: false, bridge.OpenCode: false, bridge.Codex: true} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(kind)(t).(*bench)
			outside := filepath.Join(b.home.Dir, "outside")
			b.Script("writes", drivertest.Step{Run: "echo x > " + outside}, drivertest.Step{Run: "echo x > inside"}, drivertest.Step{Say: "done"})
			spec := b.Spec(t)
			spec.Access, spec.Sandbox, spec.Prompt = job.AccessAsk, []string{self, "probe-sandbox"}, drivertest.Prompt("writes")
			j := drivertest.Start(t, b, spec)
			asked := 0
			for event := range j.Run.Events() {
				if question, is := event.(job.Asked); is {
					asked++
					if question.Question.LeavesSandbox != leaves {
						t.Errorf("that it may leave the sandbox is said: %t, want %t (%s)", question.Question.LeavesSandbox, leaves, question.Question.Subject)
					}
					go j.Run.Answer(soon(t), job.Answer{Question: question.Question.ID, Allow: true}) //nolint:errcheck // the turn's end tells
				}
				if _, is := event.(job.TurnEnded); is {
					break
				}
			}
			if asked < 2 {
				t.Errorf("it asked %d times, want 2", asked)
			}
			if exists(outside) != leaves {
				t.Errorf("outside is written: %t, want %t", exists(outside), leaves)
			}
			if !exists(filepath.Join(spec.Folder, "inside")) {
				t.Error("what was allowed in its folder was not done")
			}
		})
	}
}
