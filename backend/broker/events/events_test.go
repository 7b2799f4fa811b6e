package events

import (
	"slices"
	"testing"

	"bridge/backend/platform/ipc/api"
)

func waits(changes <-chan struct{}) bool {
	select {
	case <-changes:
		return false
	default:
		return true
	}
}

func TestWhoWatchesIsSignalledOnceForSeveralChanges(t *testing.T) {
	f := New(100)
	changes, stop := f.Watch()
	if !waits(changes) {
		t.Error("signalled before any change")
	}
	f.Changed()
	f.Changed()
	if waits(changes) || !waits(changes) {
		t.Error("two changes are not one signal")
	}
	if got := f.Current(); got != 102 {
		t.Errorf("revision %d after two changes from 100, want 102", got)
	}
	stop()
	if f.Changed(); !waits(changes) {
		t.Error("signalled after stop")
	}
}

// conn keeps the revisions that were pushed to it.
type conn struct{ revisions []int64 }

func (c *conn) Push(event string, data any) {
	if pushed, ok := data.(api.RevisionEvent); ok && event == api.EventRevision {
		c.revisions = append(c.revisions, pushed.Revision)
	}
}

func TestASubscriberIsPushedEachRevisionUntilItHasGone(t *testing.T) {
	f, c := New(100), &conn{}
	f.Changed()
	f.Subscribe(c)
	f.Subscribe(c) // it may ask again after a break
	f.Changed()
	f.Changed()
	f.Unsubscribe(c)
	f.Changed()
	if !slices.Equal(c.revisions, []int64{102, 103}) {
		t.Errorf("pushed %v, want the revisions 102 and 103", c.revisions)
	}
}
