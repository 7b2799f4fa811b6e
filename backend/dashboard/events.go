package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"bridge/backend/bridge"
)

// Limits of the event streams, all ours.
const (
	// maxStreams is far above the pages that one person has open.
	maxStreams = 32
	// keepAlive shows a stream that it is alive (http contract: 15 s).
	keepAlive = 15 * time.Second
	// pace is the shortest time between two events of one stream: a page that
	// fetches ten times a second is live enough.
	pace = 100 * time.Millisecond
	// writeLimit is how long one event may take to leave; a client that reads
	// slower is dropped and comes back by itself.
	writeLimit = 10 * time.Second
	// resubscribe is the wait before asking for a broker again.
	resubscribe = time.Second
)

// events tells every open page that the revision changed.
type events struct {
	now func() time.Time

	mu       sync.Mutex // guards below
	revision int64      // 0 without a broker
	streams  map[*eventStream]struct{}
	closed   bool
}

// eventStream is one open page. changed holds at most one signal: what a slow
// page missed is one event when it is ready.
type eventStream struct {
	changed chan struct{}
	closed  chan struct{}
}

func newEvents(now func() time.Time) *events {
	return &events{now: now, streams: map[*eventStream]struct{}{}}
}

// follow publishes the broker's revisions, and 0 while there is none.
func (e *events) follow(ctx context.Context, broker Broker) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
		if revisions, err := broker.Subscribe(ctx); err == nil {
			for revision := range revisions {
				e.publish(revision)
			}
		}
		e.publish(0)
		retry.Reset(resubscribe)
	}
}

// publish signals a revision that differs from the last.
func (e *events) publish(revision int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if revision == e.revision {
		return
	}
	e.revision = revision
	for stream := range e.streams {
		stream.signal()
	}
}

func (s *eventStream) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // one signal already waits
	}
}

// join opens a stream with its first signal waiting: the page then fetches what
// it missed.
func (e *events) join() (*eventStream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, bridge.Errorf(bridge.Unavailable, "the dashboard is closing")
	}
	if len(e.streams) == maxStreams {
		return nil, bridge.Errorf(bridge.Busy, "too many pages are open: close one")
	}
	stream := &eventStream{changed: make(chan struct{}, 1), closed: make(chan struct{})}
	stream.signal()
	e.streams[stream] = struct{}{}
	return stream, nil
}

func (e *events) leave(stream *eventStream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, stream)
}

func (e *events) latest() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revision
}

// close ends all streams, those to come included.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	for stream := range e.streams {
		close(stream.closed)
	}
}

// streamEvents answers GET /api/events.
func (d *Dashboard) streamEvents(w http.ResponseWriter, r *http.Request) error {
	stream, err := d.events.join()
	if err != nil {
		return err
	}
	defer d.events.leave(stream)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := eventWriter{w: w, control: http.NewResponseController(w), now: d.events.now}
	defer out.release()
	d.events.pump(r.Context(), stream, out.write)
	return nil
}

// pump writes until the client is gone, too slow, or the dashboard closes.
func (e *events) pump(ctx context.Context, stream *eventStream, write func(string) error) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	rest := time.NewTimer(0) // fires when the next event may go out
	defer rest.Stop()
	<-rest.C
	changed := stream.changed
	for {
		var text string
		select {
		case <-ctx.Done():
			return
		case <-stream.closed:
			return
		case <-rest.C:
			changed = stream.changed
			continue
		case <-alive.C:
			text = ": keep-alive\n\n"
		case <-changed:
			text = fmt.Sprintf("event: state\ndata: {\"revision\":%d}\n\n", e.latest())
			changed = nil
			rest.Reset(pace)
		}
		if write(text) != nil {
			return
		}
	}
}

// eventWriter writes one piece of a stream at once, in bounded time.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
}

func (e eventWriter) write(text string) error {
	if err := e.control.SetWriteDeadline(e.now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound an event's time: %w", err)
	}
	if _, err := e.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if err := e.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("flush an event: %w", err)
	}
	return nil
}

// release takes the deadline off the connection, which the next request uses.
func (e eventWriter) release() { _ = e.control.SetWriteDeadline(time.Time{}) } // an unbounded writer has none
