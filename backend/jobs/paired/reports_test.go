package paired

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
)

var start = time.UnixMilli(1_700_000_000_000)

func given(name string) job.Job {
	return job.Job{Name: name, Agent: bridge.Codex, Owner: "boss", Supervisor: "s-1", State: job.Running, Run: 1, Remote: &job.Remote{Host: "desk", Name: name}, Mirror: &job.Mirror{PC: "key"}}
}

const first, second = "codex-job-00000001", "codex-job-00000002"

// said is what the desk says; its clock is that of start unless it says so.
func said(change func(*remote.JobState)) remote.Value {
	state := remote.JobState{Job: first, Status: job.Running, Run: 1, Now: start.UnixMilli()}
	if change != nil {
		change(&state)
	}
	return remote.Value{State: &state}
}

func TestRMT_17_WhatAnotherPCSaysIsBounded(t *testing.T) {
	for name, change := range map[string]func(*remote.JobState){
		"another job":               func(s *remote.JobState) { s.Job = second },
		"a state that nobody knows": func(s *remote.JobState) { s.Status = "thriving" },
		"a result of no run":        func(s *remote.JobState) { s.Results = 2 },
		"runs without number":       func(s *remote.JobState) { s.Run = 1 << 40 },
		"a negative run":            func(s *remote.JobState) { s.Run = -1 },
		"negative tokens":           func(s *remote.JobState) { s.Tokens = -1 },
		"101 %":                     func(s *remote.JobState) { p := 101; s.Percent = &p },
	} {
		var b Reports
		if news, err := b.RecordReport(given(first), said(change), start); err == nil || news.Is {
			t.Errorf("%s is taken", name)
		}
	}
	var b Reports
	news, err := b.RecordReport(given(first), said(func(s *remote.JobState) {
		s.Title, s.Note, s.Workdir = strings.Repeat("é", 500), "a\x1b[31mb\nc", strings.Repeat("w", 10_000)
		s.Wait = &job.Wait{For: "\x00", ID: strings.Repeat("i", 1000)}
	}), start)
	if err != nil || len([]rune(news.State.Title)) != 120 || news.State.Note != `a\x1b[31mb\nc` || len(news.State.Workdir) != 4096 || news.State.Wait.For != `\x00` || len(news.State.Wait.ID) != 128 {
		t.Errorf("it is %+v, %v", news.State, err)
	}
}

func TestRMT_17_TimesAreThoseOfThisPC(t *testing.T) {
	var b Reports
	ahead := 10 * time.Minute // the desk's clock goes before
	value := said(func(s *remote.JobState) {
		s.Now, s.Started = start.Add(ahead).UnixMilli(), start.Add(ahead-time.Minute).UnixMilli()
	})
	approval := job.NewApproval(job.Approval{ID: "q1", Job: first}, start.Add(ahead))
	value.Approvals = []job.Approval{approval}
	news, err := b.RecordReport(given(first), value, start)
	if err != nil || news.State.Started != start.Add(-time.Minute).UnixMilli() {
		t.Errorf("it began at %d, %v", news.State.Started, err)
	}
	got := b.Approvals(first)[0]
	if got.AskedAt.Time() != start || !got.IsOpen(start.Add(10*time.Minute-1)) || got.IsOpen(start.Add(10*time.Minute)) {
		t.Errorf("it was asked at %s, until %s", got.AskedAt.Time(), got.ExpiresAt.Time())
	}
}

func TestRMT_15_AnOlderAnswerTakesNothingBack(t *testing.T) {
	var b Reports
	at := func(seconds int) remote.Value {
		return said(func(s *remote.JobState) { s.Now += int64(seconds) * 1000 })
	}
	for i, tt := range []struct {
		seconds int
		is      bool
	}{{0, true}, {5, true}, {4, false}, {5, true}, {-54, false}, {-55, true}} { // a clock that was set back a minute counts
		if news, err := b.RecordReport(given(first), at(tt.seconds), start); err != nil || news.Is != tt.is {
			t.Errorf("answer %d: %v, %v, want %v", i, news.Is, err, tt.is)
		}
	}
	later := given(first)
	later.Run = 2
	if news, _ := b.RecordReport(later, at(60), start); news.Is {
		t.Error("a run before the one that is known was taken")
	}
}

func TestRMT_13_AJobThatIsHeardOfAgainIsKnown(t *testing.T) {
	entry := given(first)
	entry.Mirror.HeardAt, entry.Mirror.UnknownAt = job.MillisOf(start), job.MillisOf(start)
	if atOnce := Show(&entry, *said(nil).State, start.Add(time.Second)); !atOnce || entry.Mirror.UnknownAt != 0 {
		t.Errorf("it is unknown since %d, durably changed at once %v", entry.Mirror.UnknownAt, atOnce)
	}
	if atOnce := Show(&entry, *said(nil).State, start.Add(2*time.Second)); atOnce {
		t.Error("what changed nothing is written at once")
	}
}

func TestRMT_16_ApprovalsBelongToTheJobThatAskedFirst(t *testing.T) {
	var b Reports
	ask := func(name string, ids ...string) {
		t.Helper()
		value := said(func(s *remote.JobState) { s.Job = name })
		for _, id := range ids {
			value.Approvals = append(value.Approvals, job.Approval{ID: id, Job: "forged", By: "forged", State: job.ApprovalAsked, Detail: name, Token: "secret", ExpiresAt: job.Millis(start.Add(time.Minute).UnixMilli())})
		}
		if _, err := b.RecordReport(given(name), value, start); err != nil {
			t.Fatal(err)
		}
	}
	ask(first, "q1", "not an id", "")
	ask(second, "q1", "q2")
	if all := b.Approvals(first); len(all) != 1 || all[0].Detail != first || all[0].Job != first || all[0].By != "boss" || all[0].Token != "" || all[0].Remote.Host != "desk" {
		t.Errorf("the first one asks %+v", all)
	}
	if all := b.Approvals(second); len(all) != 1 || all[0].ID != "q2" {
		t.Errorf("the second one asks %+v", all)
	}
	ask(first)
	if got, _ := b.Approval("q1"); got.State != job.ApprovalWithdrawn {
		t.Errorf("what is not told of any more is %s", got.State)
	}
}

func TestRMT_15_OfManyResultsTheLastOnesAreFetched(t *testing.T) {
	var b Reports
	entry := given(first)
	if _, err := b.RecordReport(entry, said(func(s *remote.JobState) { s.Run, s.Results = 1000, 999 }), start); err != nil {
		t.Fatal(err)
	}
	if got := b.Missing(entry); got != 980 {
		t.Errorf("the next one is %d", got)
	}
	entry.Mirror.Results = 998
	if got := b.Missing(entry); got != 999 {
		t.Errorf("then it is %d", got)
	}
	entry.Mirror.Results = 999
	if got := b.Missing(entry); got != 0 {
		t.Errorf("at the end it is %d", got)
	}
}

func TestRMT_15_WhyAPCTellsNothingOfAJobIsShown(t *testing.T) {
	var b Reports
	b.Refused(first, bridge.Errorf(bridge.Denied, "jobs for laptop are not allowed here"))
	entry := given(first)
	entry.Mirror.HeardAt = job.Millis(start.UnixMilli())
	if got := b.Doubt(entry, start.Add(90*time.Second)); !strings.HasSuffix(got, ": jobs for laptop are not allowed here") {
		t.Errorf("the doubt is %q", got)
	}
	if fmt.Sprintf("%x", Digest("a")) == fmt.Sprintf("%x", Digest("b")) {
		t.Error("two texts have one digest")
	}
}
