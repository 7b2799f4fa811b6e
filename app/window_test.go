//go:build linux || windows

package app

import "testing"

// On a slow machine the boot page leads to the dashboard before the window is known: the
// first look at the broker's address is no move, and Wails ends a process that asks for
// something without the window's handle, so a move waits for that.
func TestDSK_01_AWindowThatIsNotThereYetIsNotReloaded(t *testing.T) {
	const here, elsewhere = "http://127.0.0.1:4711", "http://127.0.0.1:4712"
	w := &window{place: "#/storage"}
	if place := w.leave(here + "/launch?key=abc"); place != "#/storage" {
		t.Errorf("it leads to %q", place)
	}
	for _, address := range []string{"", here, elsewhere} {
		w.follow(address)
		if w.opened != here {
			t.Errorf("the broker is at %q: the window is at %q", address, w.opened)
		}
	}
	if w.url != elsewhere {
		t.Errorf("its first page would look for %q", w.url)
	}
}
