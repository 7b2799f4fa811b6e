package store

import (
	"bytes"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Whoever looks at a home while its search index is being made finds none, or
// all of it: an empty file would be taken for a loss.
func TestSTO_15_TheIndexGetsItsNameWhenItIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	how := howItAppears(t, indexPath(path), func() {
		db := openIndexed(t, path)
		eventually(t, "the index is there", func() bool {
			_, _, err := db.SearchWords(t.Context(), wordQuery(t, "anything"))
			return err == nil
		})
	})
	if how != unix.IN_MOVED_TO {
		t.Errorf("history.db appeared by event %#x, want a rename (%#x)", how, unix.IN_MOVED_TO)
	}
}

// howItAppears is the event by which the file at path came into being.
func howItAppears(t *testing.T, path string, act func()) uint32 {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(watch) }()
	if _, err := unix.InotifyAddWatch(watch, filepath.Dir(path), unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	act()
	events := make([]byte, 1<<16)
	n, err := unix.Read(watch, events)
	if err != nil {
		t.Fatal(err)
	}
	for events = events[:n]; len(events) > 0; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&events[0]))
		events = events[unix.SizeofInotifyEvent:]
		name := bytes.TrimRight(events[:event.Len], "\x00")
		if string(name) == filepath.Base(path) {
			return event.Mask
		}
		events = events[event.Len:]
	}
	return 0
}
