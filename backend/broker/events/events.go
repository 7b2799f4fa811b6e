// Package events tells everyone who watches that something changed. It counts the
// changes: whoever shows something of the broker knows by the number whether that is
// out of date. It has a lock of its own, so that nobody who tells of a change waits
// for the broker's.
package events

import (
	"sync"

	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// Conn is where revisions are pushed to. It never waits; an *ipc.Conn is one.
type Conn interface {
	Push(event string, data any)
}

// Feed counts the changes of what the broker shows.
type Feed struct {
	mu       sync.Mutex // guards who watches, and that each sees the revisions in their order
	revision int64
	watchers map[lifecycle.Signal]struct{} // in this process
	conns    map[Conn]struct{}             // that subscribed
}

// New begins at a revision that grows over restarts, too.
func New(revision int64) *Feed {
	return &Feed{revision: revision, watchers: map[lifecycle.Signal]struct{}{}, conns: map[Conn]struct{}{}}
}

// Changed counts a revision.
func (f *Feed) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision++
	for watcher := range f.watchers {
		watcher.Notify()
	}
	for conn := range f.conns {
		conn.Push(api.EventRevision, api.RevisionEvent{Revision: f.revision})
	}
}

// Current is the newest revision.
func (f *Feed) Current() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision
}

// Watch brings a signal whenever something changed, until stop is called. Several
// changes may be one signal.
func (f *Feed) Watch() (changes <-chan struct{}, stop func()) {
	watcher := lifecycle.NewSignal() // one signal waits: the reader then looks at everything
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[watcher] = struct{}{}
	return watcher, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, watcher)
	}
}

// Subscribe pushes each revision to the connection until it unsubscribes.
func (f *Feed) Subscribe(conn Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[conn] = struct{}{}
}

// Unsubscribe ends that.
func (f *Feed) Unsubscribe(conn Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}
