package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// TestSEC_09_NoJobWritesInAReservedFolder: it is refused when it is given, when a job of
// less access is given more, and when another PC gives it.
func TestSEC_09_NoJobWritesInAReservedFolder(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	link := filepath.Join(b.work(), "link")
	if err := os.Symlink(b.home.Dir(), link); err != nil {
		t.Skip("no links on this system:", err)
	}
	if err := os.MkdirAll(filepath.Join(b.home.Worktrees(), "some-job"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		name, access, cwd string
		refused           bool
	}{
		{"edit in Bridge's home", "edit", b.home.Dir(), true},
		{"ask in Bridge's home", "ask", b.home.Dir(), true},
		{"read in Bridge's home", "read", b.home.Dir(), false},
		{"edit through a link", "edit", link, true},
		{"edit above Bridge's home", "edit", filepath.Dir(b.home.Dir()), true},
		{"edit in the system's", "edit", "/etc", true},
		{"edit at the top", "ask", "/", true},
		{"read at the top", "read", "/", false},
		{"edit in a worktree", "edit", filepath.Join(b.home.Worktrees(), "some-job"), false},
		{"edit in a project", "edit", b.work(), false},
	} {
		_, err := boss.spawn(fmt.Sprintf("%02d", i), fmt.Sprintf(`{"prompt":"x","access":%q,"cwd":%q}`, test.access, test.cwd))
		if (bridge.CodeOf(err) == bridge.Denied) != test.refused || test.refused && !strings.Contains(err.Error(), test.cwd) || !test.refused && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	request := job.Request{Kind: bridge.Codex, Prompt: "x", Access: job.AccessEdit, Cwd: b.home.Dir(), Timeout: time.Hour}
	_, err := b.jobs.Take(t.Context(), request, "codex-job-000000a0", job.Caller{Name: "laptop/boss", ID: "laptop/1", PC: "laptop"}, "")
	if bridge.CodeOf(err) != bridge.Denied || strings.Contains(err.Error(), b.home.Dir()) {
		t.Errorf("a paired PC's: %v, want Denied without a word of what lies here", err)
	}
}

func TestSEC_09_MoreAccessIsRefusedInAReservedFolder(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	reading := boss.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","access":"read","cwd":%q}`, b.home.Dir()))
	for i, args := range []job.MessageArgs{{Access: "edit"}, {Access: "ask", Message: "go on"}} {
		args.Job = reading.Job
		if _, err := boss.JobMessage(t.Context(), api.JobMessageArgs{ID: fmt.Sprintf("more-%d", i), Args: args}); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), b.home.Dir()) {
			t.Errorf("%+v: %v, want Denied", args, err)
		}
	}
	if _, err := boss.JobMessage(t.Context(), api.JobMessageArgs{ID: "less", Args: job.MessageArgs{Job: reading.Job, Access: "read"}}); err != nil {
		t.Errorf("it reads on: %v", err)
	}
}
