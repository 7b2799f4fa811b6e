package run

import (
	"sync"

	"bridge/backend/core/job"
	"bridge/backend/platform/lifecycle"
)

// feed is a stream of events. put never makes its writer wait: what the CLI says next may
// be the answer that the reader of the events is waiting for. A writer of much asks
// waitForRoom first, where it holds no lock.
type feed struct {
	out chan job.Event // without a buffer: the queue is it

	mu     sync.Mutex // guards the queue
	queue  []job.Event
	behind int           // bytes that the reader has not taken
	room   chan struct{} // closed when the reader has taken some, and replaced; nil without a waiting writer
	closed bool
	wake   lifecycle.Signal // something is to be done
}

func newFeed() *feed {
	f := &feed{out: make(chan job.Event), wake: lifecycle.NewSignal()}
	go f.pump()
	return f
}

// mostBehind is how many bytes of events wait for their reader at most, but for the last.
const mostBehind = 8 << 20

// waitForRoom waits while too much waits for the reader, or the feed is closed.
func (f *feed) waitForRoom() {
	for {
		f.mu.Lock()
		if f.behind < mostBehind || f.closed {
			f.mu.Unlock()
			return
		}
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		<-room
	}
}

// taken notes that the reader has an event.
func (f *feed) taken(event job.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind -= sizeOf(event)
	f.freeLocked()
}

func (f *feed) freeLocked() {
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
}

// sizeOf is about how many bytes an event holds.
func sizeOf(event job.Event) int {
	const small = 256
	switch e := event.(type) {
	case job.Text:
		return small + len(e.Text)
	case job.StepStarted:
		return small + len(e.Subject) + len(e.Input)
	case job.StepEnded:
		return small + len(e.Output)
	case job.TurnEnded:
		return small + len(e.Text) + len(e.Message)
	case job.Asked:
		return small + len(e.Question.Input) + len(e.Question.Diff)
	default:
		return small
	}
}

// put appends an event. After close it is dropped.
func (f *feed) put(events ...job.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.queue = append(f.queue, events...)
	for _, event := range events {
		f.behind += sizeOf(event)
	}
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
	f.behind += sizeOf(last)
	f.freeLocked()
	f.signalLocked()
}

func (f *feed) signalLocked() {
	f.wake.Notify()
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
			for i, event := range batch {
				f.out <- event
				batch[i] = nil // whoever has it may let go of it
				f.taken(event)
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
