package sandbox_test

import (
	"context"
	"slices"
	"testing"

	"bridge/backend/job"
	"bridge/backend/proc"
	"bridge/backend/sandbox"
	"bridge/backend/trial"
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
	if err := trees.Look(); err != nil {
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
	if err := trees.Look(); err != nil { // a look at a dead runner forgets nothing
		t.Fatal(err)
	}
	for _, pid := range s.below {
		if name, err := trees.JobOf(job.Process{PID: pid}); name != mark.Job || err != nil {
			t.Errorf("%d is of %q, %v", pid, name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), trial.Patience)
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
