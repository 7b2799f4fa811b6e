package files

import (
	"time"

	"bridge/backend/core/remote"
)

// patientDelay is how much later than at best chunks may be taken before they count as
// piling up: about as long as a command beside them may then wait.
const patientDelay = 100 * time.Millisecond

// window is how many chunks are sent before the first of them is acknowledged. It
// grows while each is taken as soon as the way allows, so that a long way is used
// whole, and falls back where they pile up, so that nothing beside them is late (as
// RFC 6817 has it).
type window struct {
	chunks int
	best   time.Duration // that an acknowledgement took; 0 before the first
	under  []mark        // sent and not acknowledged, the oldest first
	skip   int           // so many acknowledgements tell nothing new
}

// mark is a chunk under way.
type mark struct {
	end int64 // the place after it
	at  time.Time
}

func newWindow() *window { return &window{chunks: remote.ChunkWindow} }

// bytes is how far ahead may be sent.
func (w *window) bytes() int64 { return int64(w.chunks) * remote.ChunkBytes }

func (w *window) sent(end int64, at time.Time) { w.under = append(w.under, mark{end, at}) }

// acked takes that the receiver has all up to a place.
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
	default: // what is under way was sent before this was known
		w.skip = len(w.under)
		w.chunks = max(w.chunks/2, remote.ChunkWindow)
	}
}
