package runs

import (
	"strings"
	"testing"

	"bridge/backend/core/job"
)

func TestJOB_15_TheMessageSaysWhatTheRunnerSaw(t *testing.T) {
	well, failed := 0, 1
	for want, seen := range map[string]Evidence{
		"It ran 3 commands, 1 failed, and changed 2 files; 12,400 tokens, $0.08, 3 min.": {
			Base: "b", Files: make([]Changed, 2), Commands: []Command{{Exit: &well}, {Exit: &failed}, {}}, Tokens: 12_400, CostUSD: 0.08, DurationMs: 185_000,
		},
		"It ran no commands and changed no files; 1 token, 7 s.":                   {Base: "b", Tokens: 1, DurationMs: 7_000},
		"It ran no commands and changed no files; 999 tokens, 7 s.":                {Base: "b", Tokens: 999, DurationMs: 7_000},
		"It ran 1 command and changed 1 file; 1,234,567 tokens, under $0.01, 0 s.": {Base: "b", Files: make([]Changed, 1), Commands: []Command{{Exit: &well}}, Tokens: 1_234_567, CostUSD: 0.004, DurationMs: 1},
		"It ran no commands and changed no files; $0.01, 0 s.":                     {Base: "b", CostUSD: 0.01, DurationMs: 1},
		"It ran 2 commands, 2 failed; 0 s.":                                        {Commands: []Command{{Exit: &failed}, {Exit: &failed}}, DurationMs: 20},
	} {
		for _, outcome := range []job.Outcome{answered, {State: job.Failed, Ended: job.EndEmpty}, {State: job.Cancelled, Ended: job.EndedCancelled}} {
			body := NewEnvelope(named(1), 1, outcome, "done", seen, noon).Body("/e")
			head, _, _ := strings.Cut(body, "\n\n")
			if _, line, _ := strings.Cut(head, "\n"); line != want {
				t.Errorf("%s says\n%s\nwant the line %q", outcome.State, body, want)
			}
		}
	}
	lost := job.Outcome{State: job.Interrupted, Ended: job.EndedRunnerGone}
	if body := NewEnvelope(named(1), 1, lost, "", Evidence{Base: "b"}, noon).Body("/e"); strings.Contains(body, "It ran") {
		t.Errorf("the result of a run that no runner saw says %q", body)
	}
}

func TestJOB_15_TheMessageSaysThatNobodyIsLoggedIn(t *testing.T) {
	envelope := NewEnvelope(named(1), 1, job.Outcome{State: job.Failed, Ended: job.EndAuth}, "", Evidence{}, noon)
	envelope.Error = "401 Unauthorized"
	body := envelope.Body("/e")
	for _, part := range []string{"nobody is logged in", "`jobs.env`", "401 Unauthorized"} {
		if !strings.Contains(body, part) {
			t.Errorf("%q is not in %q", part, body)
		}
	}
}
