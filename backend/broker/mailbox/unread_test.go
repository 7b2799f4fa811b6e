package mailbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

func to(recipient, from string, bytes int) bridge.Message {
	return bridge.Message{Recipient: recipient, From: bridge.Address{ID: from}, Body: strings.Repeat("x", bytes)}
}

func TestSEC_11_ASenderMayHaveOnlySoMuchUnread(t *testing.T) {
	counts := 0
	counted := func(bytes int) func() (int, error) {
		return func() (int, error) { counts++; return bytes, nil }
	}
	unread := &Unread{Most: 100}
	for _, tt := range []struct {
		name    string
		message bridge.Message
		live    bool
		unread  int // bytes in the store
		refused bool
		counts  int // of the store, so far
	}{
		{"exactly the room that is left", to("p1", "p2", 40), false, 60, false, 1},
		{"one byte more than is left", to("p1", "p2", 1), false, 100, true, 2},
		{"room again, after a reading", to("p1", "p2", 40), false, 0, false, 3},
		{"within the room known", to("p1", "p2", 60), false, 40, false, 3},
		{"no room known", to("p1", "p2", 1), false, 99, false, 4},
		{"nothing, with no room", to("p1", "p2", 0), false, 100, false, 4},
		{"another sender", to("p1", "p3", 100), false, 0, false, 5},
		{"another recipient", to("p4", "p2", 100), false, 0, false, 6},
		{"too much at once", to("p4", "p5", 101), false, 0, true, 7},
		{"the owner", to("p1", bridge.OwnerID, 1000), false, 1000, false, 7},
		{"a live session", to("p1", "p2", 1000), true, 1000, false, 7},
	} {
		err := unread.Take(tt.message, "web", tt.live, counted(tt.unread))
		if (bridge.CodeOf(err) == bridge.Busy) != tt.refused || (err == nil) == tt.refused {
			t.Errorf("%s: %v", tt.name, err)
		}
		if counts != tt.counts {
			t.Errorf("%s: the store was counted %d times, want %d", tt.name, counts, tt.counts)
		}
	}
}

func TestSEC_11_RoomKnownOfALiveSessionIsCountedAgainOnceItIsAway(t *testing.T) {
	unread, counts := &Unread{Most: 100}, 0
	count := func() (int, error) { counts++; return 0, nil }
	for _, live := range []bool{false, true, false} {
		if err := unread.Take(to("p1", "p2", 1), "web", live, count); err != nil {
			t.Fatal(err)
		}
	}
	if counts != 2 {
		t.Errorf("counted %d times, want 2", counts)
	}
}

func TestSEC_11_ARefusalNamesTheRecipientAndTheSizes(t *testing.T) {
	err := (&Unread{Most: 2 << 20}).Take(to("p1", "p2", 1), "web", false, func() (int, error) { return 2 << 20, nil })
	if err == nil || !strings.HasPrefix(err.Error(), "web is away and has "+bridge.Size(2<<20)+" of yours unread, and "+bridge.Size(2<<20)+" may wait") {
		t.Error(err)
	}
	broken := errors.New("the store is closed")
	if err := (&Unread{}).Take(to("p1", "p2", 1), "web", false, func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a count that fails: %v", err)
	}
}

func TestSEC_11_TheUsualLimit(t *testing.T) {
	for unread, refused := range map[int]bool{MostUnread - 1: false, MostUnread: true} {
		err := (&Unread{}).Take(to("p1", "p2", 1), "web", false, func() (int, error) { return unread, nil })
		if (bridge.CodeOf(err) == bridge.Busy) != refused {
			t.Errorf("%d bytes unread: %v", unread, err)
		}
	}
}

func TestSEC_11_RememberedPairsAreLimited(t *testing.T) {
	unread, counts := &Unread{Most: 100}, 0
	count := func() (int, error) { counts++; return 0, nil }
	take := func(from string) {
		t.Helper()
		if err := unread.Take(to("p1", from, 1), "web", false, count); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostKnown {
		take(fmt.Sprint("p", i))
	}
	if take("p0"); counts != mostKnown {
		t.Errorf("a remembered pair is counted again: %d counts", counts)
	}
	take("one more")
	if len(unread.allowances) != 1 {
		t.Errorf("%d pairs are remembered", len(unread.allowances))
	}
	if take("p0"); counts != mostKnown+2 {
		t.Errorf("a forgotten pair is not counted again: %d counts", counts)
	}
}
