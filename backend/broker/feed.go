package broker

import (
	"sync"

	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
)

// feed counts the changes of what the broker shows and tells everyone who watches.
type feed struct {
	mu       sync.Mutex // guards who watches, and that each sees the revisions in their order
	revision int64
	watchers map[chan struct{}]struct{} // in this process
	conns    map[*ipc.Conn]struct{}     // that subscribed
}

// newFeed begins at a revision that grows over restarts, too.
func newFeed(revision int64) *feed {
	return &feed{revision: revision, watchers: map[chan struct{}]struct{}{}, conns: map[*ipc.Conn]struct{}{}}
}

// changed counts a revision.
func (f *feed) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision++
	for watcher := range f.watchers {
		select {
		case watcher <- struct{}{}:
		default: // it already has a change to look at
		}
	}
	for conn := range f.conns {
		conn.Push(api.EventRevision, api.RevisionEvent{Revision: f.revision})
	}
}

// current is the newest revision.
func (f *feed) current() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision
}

// watch brings a signal whenever something changed, until stop is called. Several
// changes may be one signal.
func (f *feed) watch() (changes <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1) // one signal waits: the reader then looks at everything
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[watcher] = struct{}{}
	return watcher, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, watcher)
	}
}

// subscribe pushes each revision to the connection until it unsubscribes.
func (f *feed) subscribe(conn *ipc.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[conn] = struct{}{}
}

func (f *feed) unsubscribe(conn *ipc.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}
