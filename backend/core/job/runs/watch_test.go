package runs

import (
	"testing"
	"time"

	"bridge/backend/core/job"
)

func TestJOB_17_AStopForEachReason(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	t.Run("budget", func(t *testing.T) {
		w := NewWatch(1.5, time.Hour, noon)
		w.Spend(1.5)
		if got := w.Stop(noon); got != "" {
			t.Errorf("at its budget: %q", got)
		}
		w.Spend(1.6)
		w.Spend(0.2) // a smaller sum says nothing new
		if got := w.Stop(noon); got != job.ForBudget {
			t.Errorf("over its budget: %q", got)
		}
		w.Allow(job.ForBudget, noon)
		w.Spend(3.1)
		if got := w.Stop(noon); got != "" {
			t.Errorf("as much again was allowed: %q", got)
		}
		w.Spend(3.11)
		if got := w.Stop(noon); got != job.ForBudget {
			t.Errorf("over that, too: %q", got)
		}
	})
	t.Run("time counts while it works only", func(t *testing.T) {
		w := NewWatch(0, 8*time.Minute, noon)
		w.Pause(at(3 * time.Minute))
		if got := w.Stop(at(5 * time.Hour)); got != "" {
			t.Errorf("while it waits: %q", got)
		}
		w.Resume(at(5 * time.Hour))
		if got := w.Next(at(5 * time.Hour)); !got.Equal(at(5*time.Hour + 5*time.Minute)) {
			t.Errorf("Next = %v", got.Sub(noon))
		}
		if got := w.Stop(at(5*time.Hour + 5*time.Minute - 1)); got != "" {
			t.Errorf("a moment before: %q", got)
		}
		if got := w.Stop(at(5*time.Hour + 5*time.Minute)); got != job.ForTime {
			t.Errorf("at its end: %q", got)
		}
		w.Allow(job.ForTime, at(6*time.Hour))
		w.Hear(at(6*time.Hour + 7*time.Minute))
		if got := w.Stop(at(6*time.Hour + 7*time.Minute)); got != "" {
			t.Errorf("as long again was allowed: %q", got)
		}
	})
	t.Run("the fifth same call", func(t *testing.T) {
		w := NewWatch(0, time.Hour, noon)
		for range 4 {
			w.Call("ls", "a")
		}
		w.Call("ls", "b") // it came to something else
		for range 3 {
			w.Call("ls", "b")
		}
		if got := w.Stop(noon); got != "" {
			t.Errorf("after four: %q", got)
		}
		w.Call("ls", "b")
		if got := w.Stop(noon); got != job.ForRepeat {
			t.Errorf("after five: %q", got)
		}
		w.Allow(job.ForRepeat, noon)
		w.Call("ls", "b")
		if got := w.Stop(noon); got != "" {
			t.Errorf("after it was allowed: %q", got)
		}
	})
	t.Run("ten minutes of silence", func(t *testing.T) {
		w := NewWatch(0, time.Hour, noon)
		w.Hear(at(2 * time.Minute))
		if got := w.Stop(at(12*time.Minute - 1)); got != "" {
			t.Errorf("before: %q", got)
		}
		if got := w.Stop(at(12 * time.Minute)); got != job.ForSilence {
			t.Errorf("after: %q", got)
		}
		w.Allow(job.ForSilence, at(13*time.Minute))
		if got := w.Stop(at(23*time.Minute - 1)); got != "" {
			t.Errorf("after it was allowed: %q", got)
		}
	})
}
