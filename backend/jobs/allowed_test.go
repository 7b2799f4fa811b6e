package jobs

import (
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// What the owner allows is asked at each job, and what he does not allow is refused in
// one sentence and starts nothing.
func TestJOB_01_WhatTheOwnerDoesNotAllowIsRefused(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	refused := func(what, args string, code bridge.Code, words string) {
		t.Helper()
		_, err := s.spawn("01", args)
		wantCode(t, what, err, code)
		if err != nil {
			wantText(t, err.Error(), words)
		}
		if len(b.jobs.Views()) != 0 || len(b.starts) != 0 {
			t.Fatalf("%s: a job is there all the same", what)
		}
	}
	b.allow(func(o *config.Jobs) { o.Enabled = false })
	refused("where there are none", `{"prompt":"x"}`, bridge.Denied, "jobs.enabled")
	b.allow(func(o *config.Jobs) { o.Enabled, o.MaxAccess = true, "damaged" })
	refused("where nobody can tell", `{"prompt":"x"}`, bridge.Invalid, "damaged")
	b.allow(func(o *config.Jobs) { o.MaxAccess = job.AccessAsk })
	refused("more access", `{"prompt":"x","access":"edit"}`, bridge.Denied, "access ask at most")
	b.allow(func(o *config.Jobs) { o.MaxAccess = job.AccessRead })
	refused("more access still", `{"prompt":"x","access":"ask"}`, bridge.Denied, "access read at most")
	s.mustSpawn("01", `{"prompt":"x"}`)
	b.started()
}

// A job that was given more earlier, or asks for more, is not continued.
func TestJOB_05_AContinuationHasNoMoreThanTheOwnerAllowsNow(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x","access":"edit"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("done")
	s.mail(1)
	b.allow(func(o *config.Jobs) { o.MaxAccess = job.AccessAsk })
	_, err := s.say(first, "go on")
	wantCode(t, "with what it had", err, bridge.Denied)
	_, err = s.JobMessage(t.Context(), api.JobMessageArgs{ID: "m", Args: job.MessageArgs{Job: first, Access: "edit"}})
	wantCode(t, "with as much again", err, bridge.Denied)
	if got := b.state(first); got != job.Finished || len(b.starts) != 0 {
		t.Errorf("it is %s", got)
	}
	if _, err = s.JobMessage(t.Context(), api.JobMessageArgs{ID: "m2", Args: job.MessageArgs{Job: first, Message: "go on", Access: "ask"}}); err != nil {
		t.Fatalf("with less: %v", err)
	}
	if got := b.started().spec; got.Run != 2 || got.Access != job.AccessAsk {
		t.Errorf("its runner is asked for %+v", got)
	}
	b.allow(func(o *config.Jobs) { o.Enabled = false })
	_, err = s.say(first, "and on")
	if err != nil {
		t.Errorf("to one that runs: %v", err)
	}
}

// Two runners never write to the same conversation of an agent: whoever comes second
// is refused by name, and what is continued waits.
func TestJOB_05_OneJobAtATimeWorksInASession(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	_, err := s.spawn("02", `{"prompt":"y","session_id":"thread-`+first+`"}`)
	wantCode(t, "beside it", err, bridge.Conflict)
	if err != nil {
		wantText(t, err.Error(), first)
	}
	r.finish("done")
	s.mail(1)
	s.mustSpawn("02", `{"prompt":"y","session_id":"thread-`+first+`"}`)
	b.started()
	if result, err := s.say(first, "go on"); err != nil || *result.Delivery != job.InLine {
		t.Errorf("the first one beside the second: %+v, %v", result, err)
	}
	if len(b.starts) != 0 || b.state(first) != job.Queued {
		t.Errorf("it is %s", b.state(first))
	}
}

func TestJOB_16_AJobOfALimitGoesOnByItselfWhereTheOwnerWantsIt(t *testing.T) {
	for wanted, runs := range map[bool]int{true: 2, false: 1} {
		b := newBench(t)
		b.allow(func(o *config.Jobs) { o.ResumeAtReset = wanted })
		s := b.join("boss", "s1")
		s.mustSpawn("01", `{"prompt":"x"}`)
		r := b.started()
		r.connect(api.RunnerReport{})
		r.work()
		until := time.Now().Add(200 * time.Millisecond)
		r.report(r.end(job.Outcome{State: job.Limit, Ended: job.EndLimit, Until: until}, ""))
		s.mail(1)
		if wanted {
			if got := b.started().spec; time.Now().Before(until) || got.Run != runs || got.Prompt != job.GoOn {
				t.Errorf("it goes on with %+v", got)
			}
			continue
		}
		eventually(t, "the limit to be over", func() bool { return time.Now().After(until) })
		b.jobs.look()
		if entry, _ := b.jobs.find(first); entry.Run != runs || entry.State != job.Limit {
			t.Errorf("it is %s, at run %d", entry.State, entry.Run)
		}
	}
}

// What the owner allows without a floor is in what the runner is asked.
func TestJOB_14_TheToolLevelAloneIsTheOwnersToAllow(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	for hex, allowed := range map[string]bool{"01": false, "02": true} {
		b.allow(func(o *config.Jobs) { o.AllowToolLevelOnly = allowed })
		s.mustSpawn(hex, `{"prompt":"x"}`)
		if got := b.started().spec.ToolOnly; got != allowed {
			t.Errorf("where it is allowed (%t) the runner is told %t", allowed, got)
		}
	}
}
