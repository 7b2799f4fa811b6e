package testkit

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A program that was just written runs, also when other processes start meanwhile.
func TestAWrittenProgramRunsAtOnce(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh is installed")
	}
	var running sync.WaitGroup
	for range 8 {
		folder := t.TempDir()
		running.Go(func() {
			for range Rounds(t, 20, 500) {
				program := filepath.Join(folder, "program")
				if err := WriteProgram(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
					t.Error(err)
				}
				if err := exec.CommandContext(t.Context(), program).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}
