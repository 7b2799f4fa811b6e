package sqlitex

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// lockEnv names the lock that this test binary holds in another process.
const lockEnv = "BRIDGE_SQLITEX_LOCK"

func TestMain(m *testing.M) {
	path := os.Getenv(lockEnv)
	if path == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if _, err := AcquireLock(context.Background(), path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent kills it
}

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

	kill := lockElsewhere(t, path)
	if _, err := AcquireLock(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock beside another process: %v, want ErrLocked", err)
	}
	kill()
	again, err := AcquireLock(t.Context(), path)
	if err != nil {
		t.Fatalf("the lock of a killed process: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// lockElsewhere returns once another process holds the lock; kill ends it.
func lockElsewhere(t *testing.T, path string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockEnv+"="+path)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // stays open as long as this process lives
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "locked" {
		t.Fatalf("the other process says %q", lines.Text())
	}
	return kill
}
