package jobs

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

func TestCHT_12_WordsAreDeliveredWhenTheRunnerSaysSo(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	say := func(id string) {
		t.Helper()
		if result, err := b.jobs.Say(id, job.Control{Job: first, Message: "x"}); err != nil || *result.Delivery != job.ToRunning {
			t.Fatalf("%s: %+v, %v", id, result, err)
		}
		if got := b.jobs.NoteDelivery(id); got.State != chat.Queued || got.At == 0 {
			t.Errorf("%s, just said: %+v", id, got)
		}
	}
	for id, tt := range map[string]struct {
		outcome *bridge.Error
		want    chat.State
	}{
		"taken":   {nil, chat.Delivered},
		"unclear": {&bridge.Error{Code: bridge.Internal, Message: "nobody knows"}, chat.Unconfirmed},
		"refused": {&bridge.Error{Code: bridge.Conflict, Message: "no"}, chat.Unconfirmed},
		"late":    {&bridge.Error{Code: bridge.Unavailable, Message: "it has ended"}, chat.Queued},
	} {
		say(id)
		r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: id, Error: tt.outcome}}})
		if got := b.jobs.NoteDelivery(id); got.State != tt.want {
			t.Errorf("%s: %+v, want %s", id, got, tt.want)
		}
	}
	say("dropped")
	if _, err := b.jobs.Cancel(first); err != nil {
		t.Fatal(err)
	}
	r.report(r.end(job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}, ""))
	if got := b.jobs.NoteDelivery("dropped"); got.State != chat.Unconfirmed {
		t.Errorf("of a cancelled job: %+v", got)
	}
	if got := b.jobs.NoteDelivery("another"); got.State != chat.Unconfirmed {
		t.Errorf("never said: %+v", got)
	}
}
