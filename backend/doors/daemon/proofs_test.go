package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

func TestCAN_02_ABrokerKnowsTheStoredProofs(t *testing.T) {
	home := newHome(t)
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	stored := []proof.Proof{{Kind: bridge.Codex, Version: "0.171.0", At: 7, Routes: []proof.Result{{Route: proof.Wake, State: proof.Broken, Since: "0.170.0"}}}}
	if err := (config.ProofsFile{Home: home}).SetProofs(stored); err != nil {
		t.Fatal(err)
	}
	d := start(t, options(home, "serve"))
	defer end(t, d)
	status, err := d.broker.Status(t.Context())
	if err != nil || len(status.Proofs) != 1 || len(status.Proofs[0].Broken) != 1 || status.Proofs[0].Broken[0].Since != "0.170.0" {
		t.Errorf("%+v, %v", status.Proofs, err)
	}
}

func TestCAN_02_ADamagedFileOfProofsStopsNoBroker(t *testing.T) {
	home := newHome(t)
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home.Dir(), config.ProofsStore)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, options(home, "serve"))
	defer end(t, d)
	if status, err := d.broker.Status(t.Context()); err != nil || status.Proofs == nil || len(status.Proofs) != 0 {
		t.Errorf("%+v, %v", status.Proofs, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestCAN_02_APCIsBusyWhileASessionWorks(t *testing.T) {
	home := newHome(t)
	d := start(t, options(home, "serve"))
	defer end(t, d)
	service := proofs{d}
	client := join(t, home, "web")
	defer client.Close()
	// A PC that runs other tests has load of its own.
	if isBusy := service.isBusy(t.Context()); isBusy && proc.Load() <= busyLoad {
		t.Error("busy, and nothing is at work")
	}
	token, err := home.ExistingToken()
	if err != nil {
		t.Fatal(err)
	}
	hook, err := ipc.Dial(t.Context(), ipc.Target{Socket: home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	if _, err := hook.Hook(t.Context(), session.HookCall{Kind: bridge.Claude, Event: session.EventPrompt, SessionID: "host-web", Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if !service.isBusy(t.Context()) {
		t.Error("free, and a session is at work")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !service.isBusy(ctx) {
		t.Error("a PC whose state nobody knows is free")
	}
}
