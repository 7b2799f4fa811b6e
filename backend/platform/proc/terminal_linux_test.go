package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"bridge/backend/testing/testkit"
)

func TestRWM_24_AProcessInATerminalIsFound(t *testing.T) {
	folder := t.TempDir()
	inside := exec.CommandContext(t.Context(), "cat")
	inside.Dir, inside.Env = folder, append(os.Environ(), "MARK=terminal")
	tty, err := pty.Start(inside)
	if err != nil {
		t.Fatal(err)
	}
	outside := exec.CommandContext(t.Context(), "cat")
	input, err := outside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	outside.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tty.Close()
		_ = input.Close()
		_ = inside.Process.Kill()
		_, _ = inside.Process.Wait()
		_ = outside.Wait()
	})
	before := time.Now()
	if _, err := tty.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	mine := func(p Process) bool { return p.PID == inside.Process.Pid || p.PID == outside.Process.Pid }
	for deadline := before.Add(testkit.Patience); ; {
		found, err := InTerminals(mine)
		if err != nil || len(found) != 1 || found[0].PID != inside.Process.Pid {
			t.Fatalf("found %+v, %v", found, err)
		}
		terminal := found[0]
		real, _ := filepath.EvalSymlinks(folder)
		if terminal.Cwd != real && terminal.Cwd != folder || terminal.Named.Ended() || terminal.Environ[len(terminal.Environ)-1] != "MARK=terminal" {
			t.Fatalf("it is %+v", terminal)
		}
		if terminal.Read.After(before.Add(-2*ReadStep)) && !terminal.Read.After(time.Now()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was read at %v, typed into after %v", terminal.Read, before)
		}
	}
}
