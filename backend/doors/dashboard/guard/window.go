package guard

import (
	"sync"
	"time"
)

// Window counts and bounds the events within the last span.
type Window struct {
	now   func() time.Time
	limit int
	span  time.Duration

	mu    sync.Mutex  // guards below
	times []time.Time // oldest first, at most limit
}

func NewWindow(now func() time.Time, limit int, span time.Duration) *Window {
	return &Window{now: now, limit: limit, span: span}
}

// Take counts one event, or returns false if the limit is reached.
func (w *Window) Take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fullLocked() {
		return false
	}
	w.times = append(w.times, w.now())
	return true
}

// Full reports whether Take would return false.
func (w *Window) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fullLocked()
}

func (w *Window) fullLocked() bool {
	begin := w.now().Add(-w.span)
	for len(w.times) > 0 && !w.times[0].After(begin) {
		w.times = w.times[1:]
	}
	return len(w.times) >= w.limit
}
