package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

func TestHUB_05_ABackupHoldsWhatTheHubHas(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.join("anna"), h.join("bert")
	for i := range 50 {
		if err := anna.send(bert, strings.Repeat("x", 20_000)+fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := anna.js.Publish(t.Context(), subject.Subject{Team: "crew", From: anna.identity.ID, Sort: subject.Decision}.String(), []byte("decided")); err != nil {
		t.Fatal(err)
	}
	client := h.dial()
	folder := filepath.Join(t.TempDir(), "backup")
	if _, err := client.Backup(t.Context(), folder, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Backup(t.Context(), folder, time.Now()); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second backup into the folder: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(h.home.Dir(), "verify-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
	if err := anna.send(bert, "after the backup"); err != nil {
		t.Fatal(err)
	}
	port := h.NATSPort()
	h.Close()
	home, err := At(filepath.Join(t.TempDir(), "restored"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), folder, home); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), folder, home); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second restore into the home: %v", err)
	}
	again := reopenHub(t, home, func(o *Options) { o.Settings.NATSPort = port })
	if again.ID() != h.ID() {
		t.Error("the restored hub is another one")
	}
	if err := bert.connect(true); err != nil {
		t.Fatal(err)
	}
	for i, msg := range bert.take(50) {
		if !strings.HasSuffix(string(msg.Data()), fmt.Sprint("x", i)) {
			t.Errorf("message %d ends with %q", i, msg.Data()[20_000:])
		}
	}
	if status, err := again.dial().Status(t.Context()); err != nil || status.Decisions != 1 || status.PCs != 2 || status.Waiting != 0 {
		t.Errorf("the restored hub is %+v (%v)", status, err)
	}
}

func TestHUB_05_ADamagedBackupIsNotRestored(t *testing.T) {
	h := openHub(t, nil)
	h.join("anna")
	folder := filepath.Join(t.TempDir(), "backup")
	b, err := h.dial().Backup(t.Context(), folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, b.Streams[0].file())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := At(filepath.Join(t.TempDir(), "restored"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), folder, home); err == nil || !strings.Contains(err.Error(), "is not as it was written") {
		t.Errorf("a damaged backup: %v", err)
	}
}
