// Package events notifies watchers of changes. It counts the changes, so that a reader
// can tell by the revision whether its data is stale. It has its own lock, so that no
// notifier waits for the broker's lock.
package events

import (
	"sync"

	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// Conn receives revisions. Push never blocks; an *ipc.Conn is one.
type Conn interface {
	Push(event string, data any)
}

// Feed counts the changes of what the broker shows.
type Feed struct {
	mu       sync.Mutex // guards the watchers and connections, and the order of the revisions
	revision int64
	watchers map[lifecycle.Signal]struct{} // in this process
	conns    map[Conn]struct{}             // that subscribed
}

// New returns a feed at a revision that also grows across restarts.
func New(revision int64) *Feed {
	return &Feed{revision: revision, watchers: map[lifecycle.Signal]struct{}{}, conns: map[Conn]struct{}{}}
}

// Changed increments the revision and notifies all watchers and connections.
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

// Current returns the newest revision.
func (f *Feed) Current() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision
}

// Watch returns a channel that gets a signal after changes, until stop is called. Several
// changes may share one signal.
func (f *Feed) Watch() (changes <-chan struct{}, stop func()) {
	watcher := lifecycle.NewSignal() // one pending signal: the reader then checks everything
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

// Unsubscribe ends a subscription.
func (f *Feed) Unsubscribe(conn Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}
