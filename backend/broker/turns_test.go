package broker

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestDSK_06_TheBrokerKnowsWhenSessionsWereAtWork(t *testing.T) {
	b := newBench(t)
	began := time.Now()
	var passed atomic.Int64
	b.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	b.restart()
	pass := func(d time.Duration) { passed.Add(int64(d)) }
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	work := func() string {
		got := b.broker.Work(0)
		return fmt.Sprint(got.Sessions[app.ID].Spans)
	}
	start := b.now().UnixMilli()
	if got := work(); got != "[]" {
		t.Errorf("nothing was done: %s", got)
	}
	at := func(seconds int64) int64 { return start + seconds*1000 }
	pass(time.Second)
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
	if got, want := work(), fmt.Sprint([]api.Span{{From: at(1)}}); got != want {
		t.Errorf("in a turn: %s, want %s", got, want)
	}
	pass(time.Second)
	b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
	pass(time.Second)
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	ended := fmt.Sprint([]api.Span{{From: at(1), To: at(3)}})
	if got := work(); got != ended {
		t.Errorf("after a turn: %s, want %s", got, ended)
	}
	pass(time.Second)
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
	pass(time.Second)
	b.leaves(app)
	if got, want := work(), fmt.Sprint([]api.Span{{From: at(1), To: at(3)}, {From: at(4), To: at(5)}}); got != want {
		t.Errorf("it left in a turn: %s, want %s", got, want)
	}
}
