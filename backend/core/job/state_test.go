package job

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

var noon = time.UnixMilli(1_800_000_000_000)

// TestEveryTransitionFromEveryState writes out the whole table: what is not in it is
// refused and leaves the job as it was.
func TestEveryTransitionFromEveryState(t *testing.T) {
	const active, ended = "starting running waiting", "finished failed refused limit cancelled interrupted"
	transitions := []struct {
		name string
		make Transition
		from string
		to   State
	}{
		{"start", Start(noon), "queued", Starting},
		{"work", Work(1), active, Running},
		{"wait", Pause(1, Wait{For: ForApproval}), active, Waiting},
		{"finish", End(1, Outcome{State: Finished}, noon), active, Finished},
		{"fail", End(1, Outcome{State: Failed}, noon), active, Failed},
		{"refuse", End(1, Outcome{State: Refused}, noon), active, Refused},
		{"limit", End(1, Outcome{State: Limit}, noon), active, Limit},
		{"cancel", End(1, Outcome{State: Cancelled}, noon), active, Cancelled},
		{"lose", Lose(1, noon, false), active, Interrupted},
		{"drop", Drop(noon), "queued", Cancelled},
		{"continue", requeue(), ended, Queued},
		{"end as running", End(1, Outcome{State: Running}, noon), "", ""},
		{"end as interrupted", End(1, Outcome{State: Interrupted}, noon), "", ""},
		{"end as nothing", End(1, Outcome{}, noon), "", ""},
		{"work of another run", Work(2), "", ""},
		{"end of another run", End(2, Outcome{State: Finished}, noon), "", ""},
	}
	for _, tt := range transitions {
		for _, from := range strings.Fields("queued " + active + " " + ended) {
			job := &Job{Name: "j", State: State(from), Run: 1}
			err := tt.make.carryOut(job)
			want := State(from)
			allowed := strings.Contains(" "+tt.from+" ", " "+from+" ")
			if allowed {
				want = tt.to
			}
			if (err == nil) != allowed || job.State != want {
				t.Errorf("%s from %s = %v, state %s; want %s", tt.name, from, err, job.State, want)
			}
			if err != nil && bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("%s from %s: code %s", tt.name, from, bridge.CodeOf(err))
			}
		}
	}
}

func TestWhatStoodInLineIsSaidUntilTheAgentHasIt(t *testing.T) {
	begin := func() *Job {
		return &Job{State: Starting, Run: 1, NextRun: NextRun{QueuedMessages: []string{"more"}, QueuedAuthors: []string{"you"}}}
	}
	tests := []struct {
		name string
		make Transition
		kept bool
	}{
		{"it works", Work(1), false},
		{"it waits", Pause(1, Wait{For: ForRetry}), false},
		{"it ended before anybody heard of it", End(1, Outcome{State: Finished}, noon), false},
		{"it was never started", End(1, Outcome{State: Failed, Ended: EndedNotStarted}, noon), true},
		{"its runner was lost first", Lose(1, noon, false), true},
	}
	for _, tt := range tests {
		job := begin()
		if err := tt.make.carryOut(job); err != nil || (len(job.QueuedMessages) == 1) != tt.kept || (len(job.QueuedAuthors) == 1) != tt.kept {
			t.Errorf("%s: %v, %q", tt.name, err, job.QueuedMessages)
		}
	}
	job := &Job{State: Running, Run: 1, NextRun: NextRun{QueuedMessages: []string{"for the next run"}}}
	if err := Work(1).carryOut(job); err != nil || len(job.QueuedMessages) != 1 {
		t.Errorf("a running job: %v, %q", err, job.QueuedMessages)
	}
}

func TestJOB_15_OnlyAnAnswerWithWordsInItIsSuccess(t *testing.T) {
	until := noon.Add(time.Hour)
	tests := []struct {
		end    TurnEnded
		cancel bool
		want   Outcome
	}{
		{TurnEnded{Why: EndAnswer, Text: "42"}, false, Outcome{State: Finished, Ended: EndAnswer}},
		{TurnEnded{Why: EndAnswer, Text: "42"}, true, Outcome{State: Finished, Ended: EndAnswer}},
		{TurnEnded{Why: EndAnswer, Text: " \n\t"}, false, Outcome{State: Failed, Ended: "empty"}},
		{TurnEnded{Why: EndAnswer}, true, Outcome{State: Cancelled, Ended: "cancelled"}},
		{TurnEnded{Why: EndEmpty, Text: "words"}, false, Outcome{State: Failed, Ended: "empty"}},
		{TurnEnded{Why: EndRefusal, Text: "I cannot"}, false, Outcome{State: Refused, Ended: "refusal"}},
		{TurnEnded{Why: EndLimit, Text: "used up", Until: until}, false, Outcome{State: Limit, Ended: "limit", Until: until}},
		{TurnEnded{Why: EndContext, Text: "too long"}, false, Outcome{State: Failed, Ended: "context"}},
		{TurnEnded{Why: EndLength, Text: "cut"}, false, Outcome{State: Failed, Ended: "length"}},
		{TurnEnded{Why: EndInterrupted}, true, Outcome{State: Cancelled, Ended: "cancelled"}},
		{TurnEnded{Why: EndLost}, false, Outcome{State: Failed, Ended: "lost"}},
		{TurnEnded{Text: "no reason given"}, false, Outcome{State: Failed, Ended: "failed"}},
	}
	for _, tt := range tests {
		if got := OutcomeOf(tt.end, tt.cancel); got != tt.want {
			t.Errorf("OutcomeOf(%+v, %v) = %+v, want %+v", tt.end, tt.cancel, got, tt.want)
		}
	}
}

func TestJOB_16_TransientTroubleIsTriedAgainAndALimitNever(t *testing.T) {
	for tried, want := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second, 0, 0} {
		if got, again := RetryAfter(EndProvider, tried); got != want || again != (want > 0) {
			t.Errorf("RetryAfter(provider, %d) = %v, %v; want %v", tried, got, again, want)
		}
	}
	for _, why := range []EndReason{EndLimit, EndAuth, EndRefusal, EndContext, EndAnswer, EndEmpty, EndInterrupted, EndLost, ""} {
		if _, again := RetryAfter(why, 0); again {
			t.Errorf("RetryAfter(%q) tries again", why)
		}
	}
	until := noon.Add(time.Hour)
	if at, resumes := ResumeAt(Outcome{State: Limit, Until: until}, true); !resumes || !at.Equal(until) {
		t.Errorf("ResumeAt = %v, %v", at, resumes)
	}
	for _, outcome := range []Outcome{{State: Limit}, {State: Failed, Until: until}} {
		if _, resumes := ResumeAt(outcome, true); resumes {
			t.Errorf("ResumeAt(%+v) resumes", outcome)
		}
	}
	if _, resumes := ResumeAt(Outcome{State: Limit, Until: until}, false); resumes {
		t.Error("a job resumes though nobody wanted that")
	}
}
