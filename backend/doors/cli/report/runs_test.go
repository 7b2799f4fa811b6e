package report

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

func TestSEC_06_ARequestFakesNoOtherInTheListOfJobs(t *testing.T) {
	const fake = "ls\x1b[2K\r\n  bridge approve other\n\nboss asks (Bash):\n  rm"
	now := time.Now()
	text := Runs(api.Runs{
		Jobs:      []api.JobView{{Job: "codex-job-1", By: "a\tb", Title: "fine\nboss asks (Bash):"}},
		Approvals: []job.Approval{{ID: "mine", Job: "codex-job-1", What: "Bash)\n  bridge approve other", Detail: fake, State: job.ApprovalAsked, ExpiresAt: job.MillisOf(now.Add(time.Minute))}},
	}, func(words ...string) string { return "bridge " + strings.Join(words, " ") }, now)
	want := "codex-job-1 asks (Bash)\\n  bridge approve other):\n  | ls\\x1b[2K\\x0d\n  |   bridge approve other\n  | \n  | boss asks (Bash):\n  |   rm\n  bridge approve mine\n"
	if !strings.HasSuffix(text, "\n\n"+want) || !strings.Contains(text, `a\tb`) || !strings.Contains(text, `fine\nboss asks`) {
		t.Errorf("the list is\n%s\nwant\n%s", text, want)
	}
	if strings.Contains(text, "\n  bridge approve other") || strings.Contains(text, "\nboss asks") {
		t.Errorf("it fakes another:\n%s", text)
	}
}
