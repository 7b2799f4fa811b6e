package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLockIsExclusiveAndDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.lock")
	first, err := AcquireLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AcquireLock(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock in this process: %v, want ErrLocked", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}

	child := helper(t, "lock", path)
	if line := child.line(t); line != "locked" {
		t.Fatalf("the child says %q", line)
	}
	if _, err := AcquireLock(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock beside another process: %v, want ErrLocked", err)
	}
	child.kill(t)
	again, err := AcquireLock(t.Context(), path)
	if err != nil {
		t.Fatalf("the lock of a killed process: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// helperEnv makes the test binary play a part in another process: its value is
// the part, helperArgs the rest.
const helperEnv, helperArgs = "BRIDGE_STORE_HELPER", "BRIDGE_STORE_HELPER_ARGS"

// child is this test binary in another process.
type child struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

func helper(t testing.TB, part, args string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+part, helperArgs+"="+args)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // stays open as long as the parent lives
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	return c
}

// line returns the next line the child prints, "" when there is none.
func (c *child) line(t testing.TB) string {
	t.Helper()
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

// ask sends the child an empty line.
func (c *child) ask(t testing.TB) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		t.Fatal(err)
	}
}

func (c *child) kill(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // it reports the kill
}
