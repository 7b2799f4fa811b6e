package models

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// TestSEC_13_CLIsAreAskedInTheOwnersFolder: a CLI reads the settings of the folder that it
// is started in, and in a shared one they may be another user's.
func TestSEC_13_CLIsAreAskedInTheOwnersFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	home, bin := t.TempDir(), t.TempDir()
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Chdir(os.TempDir())
	program, seen := filepath.Join(bin, "opencode"), filepath.Join(bin, "seen")
	if err := testkit.WriteProgram(program, []byte("#!/bin/sh\npwd -P >> "+seen+"\necho 1.2.3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for what, ask := range map[string]func(){
		"its models": func() { _, _ = openCodeModels(t.Context(), program, os.Environ()) },
		"its version": func() {
			_, _ = agent.Detect(t.Context(), bridge.OpenCode, agent.Lookup{Env: os.Getenv, Configured: program})
		},
		"its queue": func() { agent.Queue{Bin: program, Timeout: time.Minute}.Push(t.Context(), "thread", "words") },
	} {
		ask()
		asked++
		said, _ := os.ReadFile(seen) // nothing is seen where it was not started
		if lines := strings.Fields(string(said)); len(lines) != asked || lines[asked-1] != real {
			t.Errorf("%s: it was started in %q, want %s", what, lines, real)
		}
	}
	t.Setenv("HOME", filepath.Join(home, "gone"))
	if got := agent.AskFolder(); got != "/" {
		t.Errorf("without a home folder it is %s", got)
	}
}
