package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/lifecycle"
)

// The limits of the event streams, all Bridge's own choice.
const (
	// maxStreams is far above the number of pages that one person opens.
	maxStreams = 32
	// keepAlive is the interval of signs of life on a quiet stream.
	keepAlive = 15 * time.Second
	// pace is the minimum time between two queries of the broker: ten updates a
	// second are enough for a page.
	pace = 100 * time.Millisecond
	// writeLimit is the timeout of writing one event; a slower client is dropped
	// and reconnects automatically.
	writeLimit = 10 * time.Second
	// watchAgain is the pause before the next attempt to watch a lost broker.
	watchAgain = time.Second
)

// events notifies every open page of a changed revision.
type events struct {
	now    func() time.Time
	joined lifecycle.Signal // a page connected: query the broker
	alone  bool             // no broker is followed: the revision is always 0
	task   func() string    // the text about maintenance

	mu       sync.Mutex // guards below
	revision int64      // 0 without a broker
	known    bool       // the revision is known since there is a listener
	streams  map[*eventStream]struct{}
	closed   bool
}

// eventStream is one open page. changed holds at most one signal: a slow page gets
// one event for everything it missed.
type eventStream struct {
	changed lifecycle.Signal
	worked  lifecycle.Signal // maintenance progressed; likewise at most one signal
	closed  chan struct{}
}

func newEvents(now func() time.Time) *events {
	return &events{now: now, joined: lifecycle.NewSignal(), streams: map[*eventStream]struct{}{}}
}

// follow publishes the broker's revisions, and 0 without a broker, until ctx ends.
func (e *events) follow(ctx context.Context, broker Broker) {
	for {
		changes, stop := broker.Watch()
		e.watch(ctx, broker, changes)
		stop()
		if ctx.Err() != nil {
			return
		}
		e.publish(0)
		if !ipc.Pause(ctx, watchAgain) {
			return
		}
	}
}

// watch queries the broker at most once per pace, and only while there are
// listeners. It returns when ctx or the broker ends.
func (e *events) watch(ctx context.Context, broker Broker, changes <-chan struct{}) {
	for {
		if e.listening() {
			status, err := broker.Status(ctx)
			if err != nil {
				status.Revision = 0
			}
			e.publish(status.Revision)
		}
		if !ipc.Pause(ctx, pace) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-e.joined:
		}
	}
}

func (e *events) listening() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.streams) > 0
}

func (e *events) publish(revision int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revision, e.known = revision, len(e.streams) > 0
	for stream := range e.streams {
		stream.changed.Notify()
	}
}

// taskChanged notifies every open page of the progress of maintenance.
func (e *events) taskChanged() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream := range e.streams {
		stream.worked.Notify()
	}
}

// join opens a stream. Its first event is the current revision. It is known while
// others listen; for the first listener the broker is queried, because an older
// revision may be outdated.
func (e *events) join() (*eventStream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, bridge.Errorf(bridge.Unavailable, "the dashboard is closing")
	}
	if len(e.streams) == maxStreams {
		return nil, bridge.Errorf(bridge.Busy, "too many pages are open: close one")
	}
	stream := &eventStream{changed: lifecycle.NewSignal(), worked: lifecycle.NewSignal(), closed: make(chan struct{})}
	e.streams[stream] = struct{}{}
	if e.known || e.alone {
		stream.changed.Notify()
	}
	e.joined.Notify()
	return stream, nil
}

func (e *events) leave(stream *eventStream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, stream)
	e.known = e.known && len(e.streams) > 0
}

func (e *events) latest() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revision
}

// close ends all streams and blocks new ones.
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

// endStreams ends all streams. Their pages reconnect and then need a valid cookie.
func (e *events) endStreams() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream := range e.streams {
		close(stream.closed)
		delete(e.streams, stream)
	}
}

// stream answers GET /api/events.
func (e *events) stream(w http.ResponseWriter, r *http.Request) error {
	stream, err := e.join()
	if err != nil {
		return err
	}
	defer e.leave(stream)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := eventWriter{w: w, control: http.NewResponseController(w), now: e.now}
	defer out.release()
	e.pump(r.Context(), stream, e.task, out.write)
	return nil
}

// pump writes a stream until its client is gone, a write fails, or the dashboard
// closes. It writes a revision once; work returns the text about maintenance.
func (e *events) pump(ctx context.Context, stream *eventStream, work func() string, write func(string) error) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	written := int64(-1)
	for {
		text := ": keep-alive\n\n"
		select {
		case <-ctx.Done():
			return
		case <-stream.closed:
			return
		case <-alive.C:
		case <-stream.worked:
			text = "event: storage\ndata: " + work() + "\n\n"
		case <-stream.changed:
			revision := e.latest()
			if revision == written {
				continue
			}
			written = revision
			text = fmt.Sprintf("event: state\ndata: {\"revision\":%d}\n\n", revision)
		}
		if write(text) != nil {
			return
		}
	}
}

// eventWriter writes and flushes one piece of a stream in bounded time. A writer
// without flush or deadline, such as a window's asset server, still gets the text.
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

// release removes the deadline from the connection for the next request.
func (e eventWriter) release() { _ = e.control.SetWriteDeadline(time.Time{}) } // a writer without a deadline needs no release
