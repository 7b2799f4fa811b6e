package soak

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// kills is how often a test kills.
func kills(t *testing.T, short int) int { return testkit.Rounds(t, short, 1000) }

// pause lets the load run for a moment that no two kills share.
func pause(most time.Duration) {
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	<-timer.C
}

// finish checks everything that holds at the end of a soak.
func (w *world) finish(n int, what string) {
	w.Helper()
	w.drained()
	for _, a := range w.actors {
		a.inbox() // the next activity: what hooks handed over counts as read
	}
	allowed := w.noneTwice()
	if !within(settle, func() bool { w.drainHolders(); return w.status().Unread == 0 }) {
		w.Error("never: the last acknowledgements")
	}
	w.acceptHistory()
	w.quiet()
	w.storeAgrees()
	w.figures(n, what, allowed)
}

func (w *world) figures(n int, what string, allowed int) {
	w.Helper()
	acknowledged := 0
	for _, ok := range w.decided {
		if ok {
			acknowledged++
		}
	}
	w.Logf("%d %s; %d messages and %d of %d decisions acknowledged, %d arrivals, %d allowed repeats after a session's death, %d refused calls, the slowest look into an inbox took %s",
		n, what, len(w.sent), acknowledged, len(w.decided), len(w.seen), allowed, w.refused, w.slowest.Round(time.Millisecond))
	if len(w.takeovers) == 0 {
		return
	}
	slices.Sort(w.takeovers)
	slices.Sort(w.starts)
	at := func(sorted []time.Duration, p float64) time.Duration {
		return sorted[int(p*float64(len(sorted)-1))].Round(time.Millisecond)
	}
	w.Logf("another broker served after: median %s, p99 %s, longest %s; a process that needs no broker took: median %s, longest %s",
		at(w.takeovers, 0.5), at(w.takeovers, 0.99), at(w.takeovers, 1), at(w.starts, 0.5), at(w.starts, 1))
	if took, most := at(w.takeovers, 0.5), max(available, takeoverStarts*at(w.starts, 0.5)); took > most {
		w.Errorf("another broker served after %s in the middle, want %s", took, most)
	}
	if took, most := at(w.takeovers, 1), max(latest, takeoverStarts*at(w.starts, 1)); took > most {
		w.Errorf("another broker served after %s at the latest, want %s", took, most)
	}
}

func TestMSG_01_MSG_04_MSG_06_DEC_12_DEC_14_PRF_01_BrokersKilledUnderLoad(t *testing.T) {
	w := newWorld(t)
	n := kills(t, 7)
	ending := w.load(n)
	for range n {
		pause(400 * time.Millisecond)
		w.killBroker()
	}
	ending()
	w.finish(n, "brokers killed")
}

// The broker dies when an answer that carries mail has just come out: between
// the answer and its acknowledgement.
func TestMSG_06_PRF_01_BrokersKilledBeforeTheAcknowledgement(t *testing.T) {
	w := newWorld(t)
	n := kills(t, 6)
	ending := w.load(n)
	for range n {
		pause(200 * time.Millisecond)
		<-w.answered
		w.killBroker()
	}
	ending()
	w.finish(n, "brokers killed at an answer")
}

func TestMSG_03_MSG_06_DEC_13_PRF_01_SessionsKilledUnderLoad(t *testing.T) {
	w := newWorld(t)
	n := kills(t, 7)
	ending := w.load(n)
	for range n {
		pause(200 * time.Millisecond)
		w.actors[rand.IntN(sessions)].replace()
	}
	ending()
	w.finish(n, "sessions killed")
}
