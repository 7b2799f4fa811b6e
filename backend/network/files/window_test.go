package files

import (
	"testing"
	"time"

	"bridge/backend/core/remote"
)

// way is a way with a length, and with a width: each chunk takes so long on it.
type way struct{ trip, each time.Duration }

// TestRMT_20_TheWindowFitsTheWay sends 1,000 chunks over ways of several kinds, each at
// the end of the window, and looks at how wide the window is then, and how long the
// last chunk was under way.
func TestRMT_20_TheWindowFitsTheWay(t *testing.T) {
	for _, tt := range []struct {
		name   string
		way    way
		chunks int
		most   time.Duration // a chunk took
	}{
		{"long and wide: it is used whole", way{60 * time.Millisecond, time.Millisecond}, 64, 70 * time.Millisecond},
		{"short and wide", way{time.Millisecond, time.Millisecond}, 64, 110 * time.Millisecond},
		{"short and narrow: nothing piles up", way{time.Millisecond, 250 * time.Millisecond}, 8, 2100 * time.Millisecond},
		{"long and narrow", way{300 * time.Millisecond, 250 * time.Millisecond}, 8, 2400 * time.Millisecond},
	} {
		t.Run("RMT-20 "+tt.name, func(t *testing.T) {
			w := newWindow()
			now := time.UnixMilli(1)
			var free time.Time // when the narrow place is
			type taken struct {
				end int64
				at  time.Time
			}
			var arrivals []taken
			var at, acked int64
			var took time.Duration
			for acked < 1000*remote.ChunkBytes {
				for at-acked < w.bytes() {
					at += remote.ChunkBytes
					w.sent(at, now)
					if free.Before(now) {
						free = now
					}
					free = free.Add(tt.way.each)
					arrivals = append(arrivals, taken{at, free.Add(tt.way.trip)})
				}
				next := arrivals[0]
				arrivals, now, acked = arrivals[1:], next.at, next.end
				took = now.Sub(w.under[0].at)
				w.acked(acked, now)
			}
			if w.chunks > tt.chunks || w.chunks < tt.chunks/2 || took > tt.most {
				t.Errorf("it is %d chunks wide, and the last one took %s", w.chunks, took)
			}
		})
	}
}

func TestRMT_20_TheWindowFallsBackOnceForOnePile(t *testing.T) {
	w := newWindow()
	now := time.UnixMilli(1)
	send := func(n int) {
		for range n {
			w.sent(int64(len(w.under)+1)*remote.ChunkBytes, now)
		}
	}
	take := func(took time.Duration) {
		now = now.Add(took)
		upto := w.under[0].end
		w.acked(upto, now)
		for i := range w.under {
			w.under[i].end -= upto
		}
	}
	for range 56 {
		send(1)
		take(time.Millisecond)
	}
	if w.chunks != 64 {
		t.Fatalf("it is %d chunks wide", w.chunks)
	}
	send(64)
	now = now.Add(time.Second)
	for range 64 {
		take(0)
	}
	if w.chunks != 32 {
		t.Errorf("after one pile it is %d chunks wide", w.chunks)
	}
}
