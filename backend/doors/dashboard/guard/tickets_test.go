package guard

import (
	"testing"
	"time"
)

func TestTicketsAreBoundedAndDiffer(t *testing.T) {
	tickets := NewTickets(time.Now)
	first := tickets.Issue()
	seen := map[string]bool{first: true}
	for range maxTickets {
		key := tickets.Issue()
		if seen[key] {
			t.Fatal("a ticket came twice")
		}
		seen[key] = true
	}
	if len(tickets.live) != maxTickets {
		t.Errorf("%d tickets wait, want at most %d", len(tickets.live), maxTickets)
	}
	if tickets.redeem(first) {
		t.Error("the oldest ticket did not give way")
	}
}
