package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// What was seen below a runner is the job's when the runner has been killed, whatever it
// has left: also one without a mark, a control group or a limit, and what that one starts.
func TestSEC_08_WhatWasSeenBelowARunnerStaysTheJobs(t *testing.T) {
	var trees sandbox.Trees
	s := startRunner(t, "secret-e")
	identity, err := proc.Identity(s.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	mark := sandbox.Mark{Job: "codex-job-1", Token: "secret-e"}
	runner := job.Process{PID: s.cmd.Process.Pid, Identity: identity}
	trees.Set(mark, runner, nil)
	if err := trees.Record(); err != nil {
		t.Fatal(err)
	}
	trees.Set(mark, runner, s.known) // as when the runner reports again
	if trees.RunnerIsGone(mark.Job) {
		t.Error("its runner is said to be gone")
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait() //nolint:errcheck // it was killed
	if !trees.RunnerIsGone(mark.Job) {
		t.Error("its runner is said to run")
	}
	if err := trees.Record(); err != nil { // a look at a dead runner forgets nothing
		t.Fatal(err)
	}
	for _, pid := range s.below {
		if name, err := trees.JobOf(job.Process{PID: pid}); name != mark.Job || err != nil {
			t.Errorf("%d is of %q, %v", pid, name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := sandbox.End(ctx, mark, slices.Concat(s.known, trees.Seen(mark.Job))); err != nil {
		t.Error(err)
	}
	if left := living(s.below); len(left) > 0 {
		t.Errorf("of %v still run %v", s.below, left)
	}
	trees.Set(sandbox.Mark{Job: "codex-job-1", Token: "the next run's"}, runner, nil)
	if seen := trees.Seen(mark.Job); len(seen) > 0 {
		t.Errorf("the next run begins with %v", seen)
	}
}

// endOwn is the test binary as a program of a job that ends what runs of the job, as the
// doctor does there. It tells whether what it had started was ended.
func endOwn(mark sandbox.Mark) int {
	cmd := exec.CommandContext(context.Background(), "setsid", "sleep", "1000")
	if err := cmd.Start(); err != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	err := sandbox.End(ctx, mark, nil)
	fmt.Println("ended:", !proc.Alive(cmd.Process.Pid), "in the group:", sandbox.HasCgroup(mark, os.Getpid()), err)
	return 0
}

// A process in a job's own group ends the others there, and not itself.
func TestSEC_08_AProcessInAGroupEndsTheOthersThere(t *testing.T) {
	mark := sandbox.Mark{Job: "codex-job-1", Token: t.TempDir()}
	if mark.Cgroup = sandbox.PlanCgroup(mark); mark.Cgroup == "" {
		t.Skip("SKIPPED, no control group was tried: this process can make none")
	}
	if err := sandbox.MakeCgroup(mark, 0); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, "test-end-own", mark.Job, mark.Token, mark.Cgroup)
	cmd.Env = append(os.Environ(), sandbox.JobVariable+"="+mark.Job, sandbox.TokenVariable+"="+mark.Token)
	cmd.Stdout, cmd.SysProcAttr = write, &syscall.SysProcAttr{Setsid: true}
	if err := sandbox.StartLeader(cmd); err != nil {
		t.Fatal(err)
	}
	write.Close() //nolint:errcheck // the program has it
	said := make([]byte, 200)
	n, err := read.Read(said)
	if want := "ended: true in the group: true <nil>\n"; err != nil || string(said[:n]) != want {
		t.Errorf("it says %q, %v", said[:n], err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	sandbox.Collected(cmd.Process.Pid)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := sandbox.End(ctx, mark, nil); err != nil {
		t.Error(err)
	}
}
