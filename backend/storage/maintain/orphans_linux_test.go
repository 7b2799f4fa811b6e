package maintain

import (
	"fmt"
	"os/exec"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

func TestJOB_06_TheDoctorNamesOrphansAndAFixEndsThem(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Running), runJob(t, c, "02", job.Finished))
	token := fmt.Sprint(jobToken, c.Home.Dir())
	write(t, c.Home.Dir(), "jobs/"+jobName("01")+"/run-1.json", fmt.Sprintf(`{"token": %q}`, token))
	start := func(env ...string) int {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd.Process.Pid
	}
	left := start(sandbox.JobVariable+"="+jobName("01"), sandbox.TokenVariable+"="+token)
	other := start(sandbox.JobVariable+"="+jobName("02"), sandbox.TokenVariable+"="+token)
	if found := findings(report(t, c)); !has(found, "processes-left jobs/"+jobName("01")) || len(found) != 1 {
		t.Fatalf("the doctor finds %v", found)
	}
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Archive().Fix(t.Context()); bridge.CodeOf(err) != bridge.Denied || !proc.Alive(left) {
		t.Errorf("a fix beside a writer: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	fixed, err := c.Archive().Fix(t.Context())
	if err != nil || len(fixed.Ended) != 1 || len(fixed.Moved) > 0 {
		t.Errorf("Fix = %+v, %v", fixed, err)
	}
	if found := findings(report(t, c)); len(found) > 0 || proc.Alive(left) || !proc.Alive(other) {
		t.Errorf("after the fix: %v, left %t, another's %t", found, proc.Alive(left), proc.Alive(other))
	}
}
