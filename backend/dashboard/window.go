package dashboard

import (
	"sync"
	"time"
)

// window counts what happened within the last span and bounds it.
type window struct {
	now   func() time.Time
	limit int
	span  time.Duration

	mu    sync.Mutex  // guards below
	times []time.Time // oldest first, at most limit
}

func newWindow(now func() time.Time, limit int, span time.Duration) *window {
	return &window{now: now, limit: limit, span: span}
}

// take counts one and reports whether there was room for it.
func (w *window) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fullLocked() {
		return false
	}
	w.times = append(w.times, w.now())
	return true
}

// full reports whether take would refuse.
func (w *window) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fullLocked()
}

func (w *window) fullLocked() bool {
	begin := w.now().Add(-w.span)
	for len(w.times) > 0 && !w.times[0].After(begin) {
		w.times = w.times[1:]
	}
	return len(w.times) >= w.limit
}
