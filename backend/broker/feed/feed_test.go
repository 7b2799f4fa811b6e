package feed

import "testing"

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
