package activity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/platform/ipc/api"
)

const hour = 60 * 60 * 1000

func times(completeFrom int64, spans ...api.Span) api.WorkTimes {
	return api.WorkTimes{Spans: spans, Whole: completeFrom}
}

func TestDSK_06_WhenASessionWasAtWorkIsTold(t *testing.T) {
	for _, tt := range []struct {
		name  string
		notes func(*Turns)
		since int64
		want  map[string]api.WorkTimes
	}{
		{"nobody", func(*Turns) {}, 0, map[string]api.WorkTimes{}},
		{"rest alone is no work", func(n *Turns) { n.Note("a", false, 10) }, 0, map[string]api.WorkTimes{}},
		{"at work still", func(n *Turns) { n.Note("a", true, 10) }, 0, map[string]api.WorkTimes{"a": times(0, api.Span{From: 10})}},
		{
			"a turn that goes on is one", func(n *Turns) { n.Note("a", true, 10); n.Note("a", true, 20); n.Note("a", false, 30) }, 0,
			map[string]api.WorkTimes{"a": times(0, api.Span{From: 10, To: 30})},
		},
		{
			"two turns", func(n *Turns) {
				n.Note("a", true, 10)
				n.Note("a", false, 20)
				n.Note("a", false, 25)
				n.Note("a", true, 30)
			}, 0,
			map[string]api.WorkTimes{"a": times(0, api.Span{From: 10, To: 20}, api.Span{From: 30})},
		},
		{
			"a turn within one moment is seen", func(n *Turns) { n.Note("a", true, 10); n.Note("a", false, 10) }, 0,
			map[string]api.WorkTimes{"a": times(0, api.Span{From: 10, To: 11})},
		},
		{
			"only what ended since", func(n *Turns) {
				n.Note("a", true, 10)
				n.Note("a", false, 20)
				n.Note("a", true, 30)
				n.Note("a", false, 40)
				n.Note("b", true, 1)
				n.Note("b", false, 2)
			}, 40,
			map[string]api.WorkTimes{"a": times(0, api.Span{From: 30, To: 40})},
		},
		{
			"another id takes them along", func(n *Turns) { n.Note("a", true, 10); n.Move("a", "b"); n.Note("b", false, 20) }, 0,
			map[string]api.WorkTimes{"b": times(0, api.Span{From: 10, To: 20})},
		},
		{
			"another id had some", func(n *Turns) { n.Note("b", true, 5); n.Note("a", true, 10); n.Move("a", "b") }, 0,
			map[string]api.WorkTimes{"b": times(0, api.Span{From: 5, To: 10}, api.Span{From: 10})},
		},
		{
			"to its own id", func(n *Turns) { n.Note("a", true, 10); n.Move("a", "a") }, 0,
			map[string]api.WorkTimes{"a": times(0, api.Span{From: 10})},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n Turns
			tt.notes(&n)
			if diff := cmp.Diff(tt.want, n.Since(tt.since)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDSK_06_WorkTimesAreBounded(t *testing.T) {
	t.Run("in age", func(t *testing.T) {
		var n Turns
		n.Note("a", true, 1000)
		n.Note("a", false, 2000)
		n.Note("a", true, 2000+8*hour)
		n.Note("a", false, 2001+8*hour)
		if got := len(n.Since(0)["a"].Spans); got != 2 {
			t.Errorf("%d spans are kept, want 2: the first ended eight hours ago", got)
		}
		n.Note("a", true, 2002+8*hour)
		if got := n.Since(0)["a"]; len(got.Spans) != 2 || got.Spans[0].From != 2000+8*hour || got.Whole != 0 {
			t.Errorf("kept is %v, want the last two", got)
		}
	})
	t.Run("in spans, and says so", func(t *testing.T) {
		var n Turns
		for i := range int64(502) {
			n.Note("a", true, 10*i)
			n.Note("a", false, 10*i+5)
		}
		got := n.Since(0)["a"]
		if len(got.Spans) != 500 || got.Spans[0].From != 20 || got.Whole != 15 {
			t.Errorf("%d spans from %d on, whole since %d; want 500 from 20, whole since 15", len(got.Spans), got.Spans[0].From, got.Whole)
		}
	})
	t.Run("and says so of another id, too", func(t *testing.T) {
		var n Turns
		n.Note("b", true, 1)
		for i := range int64(501) {
			n.Note("a", true, 10+10*i)
			n.Note("a", false, 15+10*i)
		}
		n.Move("a", "b")
		if got := n.Since(0)["b"]; len(got.Spans) != 500 || got.Whole != 20 {
			t.Errorf("%d spans, whole since %d; want 500, whole since 20", len(got.Spans), got.Whole)
		}
	})
	t.Run("in sessions, those at work last", func(t *testing.T) {
		var n Turns
		n.Note("busy", true, 1)
		for i := range int64(1000) {
			id := fmt.Sprint(i)
			n.Note(id, true, 10+i)
			n.Note(id, false, 11+i)
		}
		spans := n.Since(0)
		if _, ok := spans["0"]; len(spans) != 1000 || ok {
			t.Errorf("%d sessions are kept, with the oldest: %v; want 1000 without", len(spans), ok)
		}
		if _, ok := spans["busy"]; !ok {
			t.Error("one that is at work was forgotten")
		}
	})
}
