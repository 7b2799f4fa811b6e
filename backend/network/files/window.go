package files

import (
	"time"

	"bridge/backend/core/remote"
)

// patientDelay is how much longer than the best time an acknowledgement may take before
// chunks count as queued. A command sent meanwhile may then wait about as long.
const patientDelay = 100 * time.Millisecond

// window is how many chunks are sent before the first is acknowledged. It grows while
// acknowledgements are fast, so that a long path is fully used. It shrinks when chunks
// queue up, so that other frames are not delayed (like RFC 6817).
type window struct {
	chunks int
	best   time.Duration // time of an acknowledgement; 0 before the first
	under  []mark        // sent and not acknowledged, oldest first
	skip   int           // the number of acknowledgements to ignore
}

// mark is a chunk in flight.
type mark struct {
	end int64 // the position after it
	at  time.Time
}

func newWindow() *window { return &window{chunks: remote.ChunkWindow} }

// bytes returns how far ahead may be sent.
func (w *window) bytes() int64 { return int64(w.chunks) * remote.ChunkBytes }

func (w *window) sent(end int64, at time.Time) { w.under = append(w.under, mark{end, at}) }

// acked records that the receiver has everything up to a position.
func (w *window) acked(upto int64, now time.Time) {
	for len(w.under) > 0 && w.under[0].end <= upto {
		took := now.Sub(w.under[0].at)
		w.under = w.under[1:]
		if w.best == 0 || took < w.best {
			w.best = took
		}
		w.learn(took)
	}
}

func (w *window) learn(took time.Duration) {
	switch {
	case w.skip > 0:
		w.skip--
	case took <= w.best+patientDelay:
		w.chunks = min(w.chunks+1, remote.MaxChunkWindow)
	default: // the chunks in flight were sent before this was known
		w.skip = len(w.under)
		w.chunks = max(w.chunks/2, remote.ChunkWindow)
	}
}
