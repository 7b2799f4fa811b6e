package runner

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// A job runs in a control group of its own where one can be made, is bounded there where
// the group has a bound, and the record says which holds. Nothing of it stays.
func TestSEC_08_AJobRunsInACgroupOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.maxProcesses = 500
	seen := filepath.Join(b.home, "seen")
	spec := b.spec("do cat /proc/self/cgroup > " + seen + "; env -i setsid sh -c 'env -i setsid sleep 1000 >/dev/null 2>&1 & echo $! > " + seen + ".left'\nsay done")
	envelope := b.run()
	claim, err := orphans.ClaimOf(b.folder, 1)
	if err != nil || claim.Cgroup != sandbox.PlanCgroup(sandbox.Mark{Job: jobName, Token: spec.Token}) {
		t.Errorf("the claim names the group %q, %v", claim.Cgroup, err)
	}
	want := runs.TrackedByProcess
	if claim.Cgroup != "" {
		want = runs.TrackedByCgroup
	}
	if envelope.State != job.Finished || envelope.Evidence.Tracking != want {
		t.Errorf("the envelope says %+v, want %q", envelope, want)
	}
	if claim.Cgroup == "" {
		t.Skip("SKIPPED, no control group was tried: this process can make none")
	}
	if text := readFile(t, seen); !strings.Contains(text, filepath.Base(claim.Cgroup)) {
		t.Errorf("a command of the job says %q", text)
	}
	if b.exists(claim.Cgroup) {
		t.Error("the group is there after the end of the job")
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, seen+".left"))); err != nil || proc.Alive(pid) {
		t.Errorf("what the job left, %d, runs on, %v", pid, err)
	}
}

// The group of a runner that was killed is ended and removed by whoever finds it dead, and
// an empty one is removed as well.
func TestSEC_08_ADeadRunnersCgroupIsEndedAndRemoved(t *testing.T) {
	next := func(found Found, _ string) error { return found.End(context.WithoutCancel(t.Context())) }
	broker := func(_ Found, folder string) error {
		_, err := orphans.End(context.WithoutCancel(t.Context()), folder)
		return err
	}
	for name, c := range map[string]struct {
		step Step
		end  func(Found, string) error
	}{
		"claimed, by the next runner": {StepClaimed, next},
		"spawned, by the next runner": {StepSpawned, next},
		"spawned, by the broker":      {StepSpawned, broker},
		"prompted, by the broker":     {StepPrompted, broker},
		"reaped, by the broker":       {StepReaped, broker},
	} {
		t.Run(name, func(t *testing.T) {
			step, end := c.step, c.end
			b := newBench(t)
			socket := b.serve()
			b.spec("do env -i setsid sleep 1000 >/dev/null 2>&1 &\nsay done")
			if code, out := b.process(socket, step); code != -1 {
				t.Fatalf("the runner did not die: %d %s", code, out)
			}
			mark, err := orphans.MarkOf(b.folder, 1)
			if err != nil {
				t.Fatal(err)
			}
			planned := sandbox.PlanCgroup(sandbox.Mark{Job: mark.Job, Token: mark.Token})
			if planned == "" {
				t.Skip("SKIPPED, no control group was tried: this process can make none")
			}
			if mark.Cgroup != planned {
				t.Errorf("the dead runner has written down %q, want %q", mark.Cgroup, planned)
			}
			if !b.exists(planned) && step != StepReaped {
				t.Fatal("the dead runner has left no group: the test proves nothing")
			}
			found, err := ReadFiles(b.folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(found, b.folder); err != nil {
				t.Error(err)
			}
			if b.exists(planned) {
				t.Error("the group is there")
			}
		})
	}
}

// A run that cannot begin leaves no group.
func TestSEC_08_ARunThatCannotBeginLeavesNoCgroup(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	if err := os.WriteFile(filepath.Join(b.home, "runs"), nil, 0o600); err != nil { // where its log goes
		t.Fatal(err)
	}
	if err := Run(t.Context(), b.options()); err == nil {
		t.Fatal("it has begun")
	}
	claim, err := orphans.ClaimOf(b.folder, 1)
	if err != nil || claim.Cgroup != "" && b.exists(claim.Cgroup) {
		t.Errorf("its group %q is there, %v", claim.Cgroup, err)
	}
}

// A process that is in no group of the run is told in another way.
func TestSEC_08_TheRecordSaysWhatTellsTheProcesses(t *testing.T) {
	r := &runner{mark: sandbox.Mark{Job: jobName, Token: "a run without a group"}}
	if got := r.tracking([]job.Process{{PID: os.Getpid()}}); got != runs.TrackedByProcess {
		t.Errorf("without a group it says %q", got)
	}
}

// Where the kernel does not scope signals, the record of a sandboxed job says so; of other
// jobs it says what it says elsewhere.
func TestSEC_08_TheRecordSaysWhereSignalsAreNotScoped(t *testing.T) {
	for _, c := range []struct {
		floor  job.Floor
		scopes bool
		want   job.Floor
	}{
		{job.FloorSandbox, true, job.FloorSandbox},
		{job.FloorSandbox, false, job.FloorSignals},
		{job.FloorOwn, false, job.FloorOwn},
		{job.FloorNone, false, job.FloorNone},
	} {
		r := &runner{Options: Options{ScopesSignals: func() bool { return c.scopes }}}
		if got := r.layer(c.floor); got != c.want {
			t.Errorf("%s, signals scoped %t: %s, want %s", c.floor, c.scopes, got, c.want)
		}
	}
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
	b := newBench(t)
	b.floor, b.unscoped = true, true
	b.spec("say done", func(s *runs.SpecFile) { s.Access = job.AccessRead })
	if envelope := b.run(); envelope.Evidence.Layer != string(job.FloorSignals) {
		t.Errorf("the envelope says %+v", envelope)
	}
}
