package sharing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/server"
)

// TestHUB_05_WhatAFullHubDoesNotTakeWaitsAndSaysWhy: messages for a PC that is away stay
// with their sender while the hub's disk is full, which their sender reads, and go on by
// themselves when there is room.
func TestHUB_05_WhatAFullHubDoesNotTakeWaitsAndSaysWhy(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=48m,mode=700"); err != nil {
		t.Skipf("NOT TRIED: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	t.Setenv(hubFreeEnv, fmt.Sprint(12<<20))
	h := startHubIn(t, filepath.Join(disk, "hub"))
	laptop, desk := h.enrol("laptop"), h.enrol("desk")
	meet(laptop, desk)
	laptop.on()
	const count = 40
	laptop.writes(desk, count)
	laptop.stands(bridge.StageAtHub, count)

	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 48<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	home, err := server.At(h.home)
	if err != nil {
		t.Fatal(err)
	}
	client, err := server.Dial(home)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	laptop.await("that the hub sees it", func() bool {
		status, err := client.Status(t.Context())
		return err == nil && status.Full != 0
	})
	more := bridge.Message{
		ID: "laptop-9-00000", Recipient: "desk/api", From: bridge.Address{ID: "peer-9", Name: "s9", Agent: bridge.Codex}, To: "desk/api",
		ConversationID: "talk", Body: "body of laptop-9-00000", CreatedAt: laptop.now().UnixMilli(),
	}
	if _, _, err := laptop.db.Remote().Append(t.Context(), more, desk.identity.ID); err != nil {
		t.Fatal(err)
	}
	laptop.broker.Changed()
	const why = "waiting for desk: the team's hub did not store it: its disk is full; it is tried again"
	laptop.await("why it waits", func() bool {
		row, err := laptop.db.Find(t.Context(), more.ID)
		return err == nil && row.Stage() == bridge.StageDurable && row.Deliveries[0].Remote.Words() == why
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	laptop.stands(bridge.StageAtHub, count+1)
	laptop.off()
	desk.on()
	desk.await("all of it", func() bool { return len(desk.mail("api")) == count+1 })
	desk.has(laptop, count+1)
}
