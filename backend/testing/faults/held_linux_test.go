//go:build amd64 || arm64

package faults

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// hold keeps the next call of a kind on the store's log from being made until it is let go.
type hold struct {
	syncs   bool
	mu      sync.Mutex
	reached chan struct{} // nil while no call is to be held
	letGo   chan struct{}
}

func (h *hold) judge(c call) verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reached == nil || c.isSync() != h.syncs || !strings.HasSuffix(c.path, "bridge.db-wal") {
		return verdict{}
	}
	close(h.reached)
	h.reached = nil
	return verdict{held: h.letGo}
}

// arm holds the next call. reached is closed when it has come, and letGo lets it be made.
func (h *hold) arm() (reached <-chan struct{}, letGo func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	come, released := make(chan struct{}), make(chan struct{})
	h.reached, h.letGo = come, released
	return come, sync.OnceFunc(func() { close(released) })
}

// TestMSG_04_PRF_05_ASlowDiskHoldsUpNoOtherAnswer: a disk takes long for one write or sync of
// the store. What waits for it is not acknowledged before, and what needs no disk is answered.
func TestMSG_04_PRF_05_ASlowDiskHoldsUpNoOtherAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		hold *hold
	}{
		{"a write", &hold{}},
		{"a sync", &hold{syncs: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, servedHome(t), tt.hold.judge)
			owner := b.dial(api.RoleOwner)
			b.answersReads(owner) // a session's first call is written down
			reached, letGo := tt.hold.arm()
			defer letGo() // or serve stands for good
			acknowledged := make(chan bool, 1)
			go func() { acknowledged <- b.send("held") }()
			select {
			case <-reached:
			case <-time.After(testkit.Patience):
				t.Fatal("the message is never written")
			}
			b.answersReads(owner)
			select {
			case ok := <-acknowledged:
				t.Fatalf("the message is answered before it is on the disk; acknowledged: %t", ok)
			default:
			}
			letGo()
			if !<-acknowledged {
				t.Error("the message is refused")
			}
			if got := b.inbox(); got["held"] != 1 {
				t.Errorf("it arrived %d times", got["held"])
			}
			b.terminate()
		})
	}
}

// answersReads wants answers to calls that need no write.
func (b *broker) answersReads(owner *ipc.Client) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), prompt)
	defer cancel()
	peers, err := b.bob.Peers(ctx, api.Caller{})
	if err != nil || !slices.ContainsFunc(peers.Peers, func(p api.Peer) bool { return p.Name == "alice" }) {
		b.Errorf("the peers are %+v: %v", peers, err)
	}
	if box, err := b.bob.Inbox(ctx, api.InboxArgs{Limit: 10}); err != nil || len(box.Messages) > 0 {
		b.Errorf("the inbox is %+v: %v", box, err)
	}
	if status, err := owner.Status(ctx); err != nil || len(status.Peers) != 2 {
		b.Errorf("the status is %+v: %v", status, err)
	}
}
