package broker

import (
	"fmt"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// TestSEC_11_UnreadMailOfOneSenderIsBounded: who is away gets so much from each sender, and
// more when it has read. The owner is not bounded, nor is what a live session gets.
func TestSEC_11_UnreadMailOfOneSenderIsBounded(t *testing.T) {
	b := newBench(t)
	b.broker.messages.unread.Most = 1000
	from, other := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "other"})
	recipient := b.join(api.Register{Name: "to", SessionID: "h1"})
	body := strings.Repeat("é", 200) // 400 bytes
	send := func(p peer, id string) error {
		_, err := p.Send(t.Context(), api.SendArgs{To: "to", Body: body, MessageID: id})
		return err
	}
	for i := range 4 {
		if err := send(from, fmt.Sprint("live-", i)); err != nil {
			t.Fatalf("to a live session: %v", err)
		}
	}
	if got := recipient.read(); len(got) != 4 {
		t.Fatalf("it has read %d", len(got))
	}
	b.leaves(recipient)
	for i := range 2 {
		if err := send(from, fmt.Sprint("away-", i)); err != nil {
			t.Fatalf("the first to one that is away: %v", err)
		}
	}
	for _, id := range []string{"more", "more-again"} {
		if err := send(from, id); bridge.CodeOf(err) != bridge.Busy || !strings.Contains(err.Error(), "was not sent") {
			t.Errorf("too much: %v, want Busy", err)
		}
	}
	if err := send(from, "away-1"); err != nil {
		t.Errorf("what was stored before, said again: %v", err)
	}
	if err := send(other, "of-another"); err != nil {
		t.Errorf("another sender: %v", err)
	}
	peerID := recipient.ID
	if _, err := b.broker.messages.sendOwner(t.Context(), peerID, api.SendArgs{To: "to", Body: strings.Repeat("x", 5000)}); err != nil {
		t.Errorf("the owner: %v", err)
	}
	b.restart()
	b.broker.messages.unread.Most = 1000
	from = b.join(api.Register{Name: "from", Previous: from.ID})
	if err := send(from, "after-a-restart"); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("after a restart: %v, want Busy", err)
	}
}
