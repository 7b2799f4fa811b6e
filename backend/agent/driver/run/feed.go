package run

import (
	"sync"

	"bridge/backend/job"
)

// feed is a stream of events that never makes its writer wait: what the CLI says
// next may be the answer that the reader of the events is waiting for.
type feed struct {
	out chan job.Event // without a buffer: the queue is it

	mu     sync.Mutex // guards the queue
	queue  []job.Event
	closed bool
	wake   chan struct{} // one token: something is to be done
}

func newFeed() *feed {
	f := &feed{out: make(chan job.Event), wake: make(chan struct{}, 1)}
	go f.pump()
	return f
}

// put appends an event. After close it is dropped.
func (f *feed) put(events ...job.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.queue = append(f.queue, events...)
	f.signalLocked()
}

// close ends the stream behind last.
func (f *feed) close(last job.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.queue, f.closed = append(f.queue, last), true
	f.signalLocked()
}

func (f *feed) signalLocked() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// pump hands the queue on until it is closed and empty.
func (f *feed) pump() {
	defer close(f.out)
	for range f.wake {
		for {
			f.mu.Lock()
			batch, closed := f.queue, f.closed
			f.queue = nil
			f.mu.Unlock()
			for _, event := range batch {
				f.out <- event
			}
			if closed {
				return
			}
			if len(batch) == 0 {
				break
			}
		}
	}
}
