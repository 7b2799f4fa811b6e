package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// waitForFile returns once the file is there.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		if _, err := os.Lstat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s never came", path)
}

// Whoever presses control-C in a restore gets back what was there, one JSON
// document that says so, and no lock that has to be removed by hand.
func TestSTO_08_STO_09_AnInterruptedRestoreEndsInOrder(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			home := t.TempDir()
			env := []string{"BRIDGE_HOME=" + home}
			file := func(n int) string { return filepath.Join(home, "jobs", fmt.Sprintf("%d.json", n)) }
			if err := os.Mkdir(filepath.Join(home, "jobs"), 0o700); err != nil {
				t.Fatal(err)
			}
			const files = 400 // enough that the signal comes before the end
			for n := range files {
				if err := os.WriteFile(file(n), []byte(`{"old": true}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if done := runBridge(t, env, "", "doctor", "--backup"); done.code != 0 {
				t.Fatal(done)
			}
			for n := range files {
				if err := os.WriteFile(file(n), []byte(`{"new": true}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			restore := exec.Command("bridge", "doctor", "--restore", "latest", "--yes", "--json")
			restore.Env = append(os.Environ(), env...)
			var output bytes.Buffer
			restore.Stdout = &output
			if err := restore.Start(); err != nil {
				t.Fatal(err)
			}
			lock := filepath.Join(home, ".maintenance-lock")
			waitForFile(t, lock)
			if err := restore.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			code := exitCode(restore.Wait())
			var said struct{ Error string }
			if err := json.Unmarshal(output.Bytes(), &said); err != nil || code != 1 || !strings.Contains(said.Error, "interrupted") {
				t.Errorf("exit %d, %q, %v", code, output.String(), err)
			}
			if _, err := os.Lstat(lock); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the lock is left: %v", err)
			}
			for n := range files {
				if data, err := os.ReadFile(file(n)); err != nil || string(data) != `{"new": true}` {
					t.Fatalf("%s is %q: %v", file(n), data, err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(home, "jobs", ".*")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
