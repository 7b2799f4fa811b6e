package jobs

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// An approval with the longest id that a runner may report reaches its supervisor.
func TestJOB_07_AnApprovalWithALongIDIsAsked(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	id := strings.Repeat("q", bridge.MaxIDChars)
	r.report(api.RunnerReport{Approvals: []job.Approval{job.NewApproval(job.Approval{ID: id, Job: first, Run: 1, By: "boss", What: "Bash", Detail: "rm -rf build", Kind: "command"}, b.now())}})
	wantText(t, s.mail(1)[0].Body, "rm -rf build", id)
}

// The PC that asked for a job polls and asks its own session. Here no session is asked, and
// no message waits for one that this PC does not have.
func TestRMT_10_AnApprovalOfAPairedPCsJobIsAskedThere(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	request := job.Request{Kind: bridge.Codex, Prompt: "x", Access: job.AccessRead, Cwd: b.work(), Timeout: time.Hour}
	if _, err := b.jobs.Take(t.Context(), request, "codex-job-000000a0", job.Caller{Name: "laptop/boss", ID: "laptop/1", PC: "laptop"}, ""); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.report(api.RunnerReport{Approvals: []job.Approval{job.NewApproval(job.Approval{ID: "q1", Job: "codex-job-000000a0", Run: 1, By: "laptop/boss", What: "Bash", Detail: "rm -rf build", Kind: "command"}, b.now())}})
	if shown := b.jobs.Approvals(); len(shown) != 1 || shown[0].State != job.ApprovalAsked {
		t.Errorf("approvals = %+v, want the open one", shown)
	}
	s.mail(0)
	if _, err := b.db.Sent(t.Context(), "approval-q1-laptop/1"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("a message waits here for the other PC's session: %v", err)
	}
}
