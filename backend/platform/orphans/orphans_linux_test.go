package orphans

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

const name = "codex-job-0000000a"

// folder is that of a job whose runner is dead and left, by its identity, one process
// and, by its mark, another one that left its session.
func folder(t *testing.T, state job.State) (dir string, known, marked *exec.Cmd) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	token := filepath.Base(filepath.Dir(dir)) + t.Name()
	known, marked = sleeper(t), sleeper(t, sandbox.JobVariable+"="+name, sandbox.TokenVariable+"="+token)
	identity, err := proc.Identity(known.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	left := runs.StateFile{
		Job: name, Run: 2, State: state, Runner: job.Process{PID: 1 << 22, Identity: "gone"},
		Processes: []job.Process{{PID: known.Process.Pid, Identity: identity, Role: "cli"}, {PID: os.Getppid(), Identity: "another"}},
	}
	write(t, filepath.Join(dir, "state.json"), left.Encode)
	write(t, ClaimFile(dir, 2), func() ([]byte, error) { return json.Marshal(Claim{Token: token}) })
	return dir, known, marked
}

func write(t *testing.T, path string, encode func() ([]byte, error)) {
	t.Helper()
	data, err := encode()
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sleeper(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func pids(left []job.Process) (pids []int) {
	for _, process := range left {
		pids = append(pids, process.PID)
	}
	slices.Sort(pids)
	return pids
}

func TestJOB_06_WhatADeadRunnerLeftIsFoundAndEnded(t *testing.T) {
	dir, known, marked := folder(t, job.Running)
	want := []int{known.Process.Pid, marked.Process.Pid}
	slices.Sort(want)
	left, err := Of(dir)
	if err != nil || !slices.Equal(pids(left), want) {
		t.Fatalf("left are %v, %v, want %v", left, err, want)
	}
	stranger := sleeper(t, sandbox.JobVariable+"="+name, sandbox.TokenVariable+"=another")
	if ended, err := End(context.Background(), dir); err != nil || !slices.Equal(pids(ended), want) {
		t.Errorf("ended were %v, %v", ended, err)
	}
	if left, err := Of(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if !proc.Alive(stranger.Process.Pid) {
		t.Error("a process of another job was ended")
	}
}

func TestJOB_06_ALivingRunnersProcessesAreItsOwn(t *testing.T) {
	dir, _, _ := folder(t, job.Running)
	identity, err := proc.Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	state := runs.StateFile{Job: name, Run: 2, State: job.Running, Runner: job.Process{PID: os.Getpid(), Identity: identity}}
	write(t, filepath.Join(dir, "state.json"), state.Encode)
	if left, err := Of(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestRWM_05_ARunnerInAnotherNamespaceKeepsItsProcesses(t *testing.T) {
	dir, known, marked := folder(t, job.Running)
	claim, err := os.ReadFile(ClaimFile(dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := disk.Files{}.WriteAtomicLocked(ClaimFile(dir, 2), claim)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := End(context.Background(), dir); err != nil || len(ended) > 0 {
		t.Errorf("while it runs: %v, %v", ended, err)
	}
	if !Drives(dir, 2, job.Process{PID: 1 << 22, Identity: "gone"}) || Drives(dir, 1, job.Process{PID: 1 << 22, Identity: "gone"}) {
		t.Error("it drives run 2 and no other")
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	want := []int{known.Process.Pid, marked.Process.Pid}
	slices.Sort(want)
	if ended, err := End(context.Background(), dir); err != nil || !slices.Equal(pids(ended), want) {
		t.Errorf("after its end: %v, %v", ended, err)
	}
}

func TestWhatCannotBeToldIsNotEnded(t *testing.T) {
	dir, known, _ := folder(t, job.Running)
	write(t, ClaimFile(dir, 2), func() ([]byte, error) { return []byte(`{"runner": {"pid": 1}}`), nil }) // as a restore brings it back
	left, err := Of(dir)
	if err != nil || !slices.Equal(pids(left), []int{known.Process.Pid}) {
		t.Errorf("by identity alone: %v, %v", left, err)
	}
	write(t, filepath.Join(dir, "state.json"), func() ([]byte, error) { return []byte(`{"job":`), nil })
	if left, err := End(context.Background(), dir); err == nil || len(left) > 0 {
		t.Errorf("a damaged state: %v, %v", left, err)
	}
}
