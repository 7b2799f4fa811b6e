package cli

import (
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/doors/worker/runjob"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// The broker's git runs below the floor where this system has one, by the smaller program
// where that is beside this one.
func TestSEC_02_TheBrokerKnowsTheFloorForItsGit(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	folder := t.TempDir()
	program, worker := filepath.Join(folder, "bridge"), filepath.Join(folder, "bridge-worker")
	if got, want := (&App{Program: program}).floor(), []string{program, runjob.SandboxExec}; !slices.Equal(got, want) {
		t.Errorf("alone: %q, want %q", got, want)
	}
	if err := testkit.WriteProgram(worker, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, want := (&App{Program: program}).floor(), []string{worker, runjob.SandboxExec}; !slices.Equal(got, want) {
		t.Errorf("beside the worker: %q, want %q", got, want)
	}
}
