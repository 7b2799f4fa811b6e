package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/testing/testkit"
)

func TestHUB_05_StatusAndCheckSayThatTheDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=128m,mode=700"); err != nil {
		t.Skipf("NOT TRIED: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	h := startHub(t, filepath.Join(disk, "hub"), "--max-bytes", "67108864")
	says := func(wanted bool) {
		t.Helper()
		const words = "FULL: the disk is full since "
		for deadline := time.Now().Add(testkit.Patience); strings.Contains(run(t, h.home, "status"), words) != wanted; {
			if time.Now().After(deadline) {
				t.Fatalf("status does not say %v that the disk is full", wanted)
			}
		}
	}
	says(false)
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 80<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	says(true)
	check := hubCommand(t.Context(), h.home, "check")
	if out, _ := check.Output(); check.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "BAD  the disk is full since ") {
		t.Errorf("check prints %q", out)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	says(false)
	for _, words := range []string{"the disk is full: nothing more is stored", "there is room on the disk again"} {
		if log, err := os.ReadFile(filepath.Join(h.home, "logs", "hub.log")); err != nil || !strings.Contains(string(log), words) {
			t.Errorf("the log does not say %q: %v", words, err)
		}
	}
}
