package broker

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/broker/proving"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// wakeBroken is a proof of a version of opencode in which only its wake is broken.
func wakeBroken(version string) proof.Proof {
	return proof.Proof{Kind: bridge.OpenCode, Version: version, Routes: []proof.Result{{Route: proof.Connects, State: proof.Works}, {Route: proof.Wake, State: proof.Broken}}}
}

// newProofBench is a broker that keeps proofs, and whose opencode says that it is 1.18.33.
func newProofBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.cli = func(context.Context, bridge.AgentKind) (agent.Found, error) {
		return agent.Found{Version: "1.18.33"}, nil
	}
	b.proofs = proving.Open(proving.Options{
		File: config.ProofsFile{Home: b.home}, Changed: func() {}, Now: b.now, Log: slog.New(slog.DiscardHandler),
	})
	b.restart()
	return b
}

// status returns what the owner is told.
func (b *bench) status() api.Status {
	b.t.Helper()
	status, err := b.broker.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

func TestCAN_02_OnlyTheOwnerRecordsAProof(t *testing.T) {
	b := newProofBench(t)
	web := b.join(api.Register{Name: "web", Kind: bridge.OpenCode, SessionID: "s1"})
	for name, caller := range map[string]*ipc.Client{"a session": web.Client, "a hook": b.dial(api.RoleHook)} {
		_, err := api.OpRecordProof.Call(t.Context(), caller, wakeBroken("1.18.33"))
		wantCode(t, name, err, bridge.Denied)
	}
	if got := b.status().Proofs; len(got) != 0 {
		t.Errorf("recorded all the same: %+v", got)
	}
	_, err := api.OpRecordProof.Call(t.Context(), b.dial(api.RoleOwner), proof.Proof{Kind: bridge.OpenCode})
	wantCode(t, "without a version", err, bridge.Invalid)
	if _, err := api.OpRecordProof.Call(t.Context(), b.dial(api.RoleOwner), wakeBroken("1.18.33")); err != nil {
		t.Fatal(err)
	}
	got := b.status().Proofs
	if len(got) != 1 || got[0].Version != "1.18.33" || len(got[0].Broken) != 1 || !strings.HasPrefix(got[0].Broken[0].Text, "wake is broken since 1.18.33") {
		t.Errorf("the status says %+v", got)
	}
}

func TestCAN_03_ASessionOfABrokenVersionSaysWhatMailDoes(t *testing.T) {
	b := newProofBench(t)
	obstacle := func() string {
		for _, p := range b.status().Peers {
			if p.Name == "web" {
				return p.Reach.Obstacle + "; " + string(p.Wake) + "; " + p.Reach.WokenBy
			}
		}
		return ""
	}
	_, err := b.dial(api.RolePlugin).Register(t.Context(), api.Register{Kind: bridge.OpenCode, Name: "web", SessionID: "s1", Cwd: "/code/shop"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "its version is known", func() bool {
		b.broker.Presence.Lock()
		defer b.broker.Presence.Unlock()
		for _, s := range b.broker.Presence.Roster.Live() {
			if box := b.broker.Presence.Boxes[s.ID]; s.Name == "web" && box != nil && box.Version == "1.18.33" {
				return true
			}
		}
		return false
	})
	before := obstacle()
	record := func(made proof.Proof) {
		t.Helper()
		if _, err := api.OpRecordProof.Call(t.Context(), b.dial(api.RoleOwner), made); err != nil {
			t.Fatal(err)
		}
	}
	record(wakeBroken("1.18.32")) // of another version
	if got := obstacle(); got != before {
		t.Errorf("another version is broken: %q, before %q", got, before)
	}
	record(wakeBroken("1.18.33"))
	if got := obstacle(); got != "Its wake is broken since 1.18.32.; none; none: its wake is broken since 1.18.32" {
		t.Errorf("its version is broken: %q", got)
	}
	record(proof.Proof{Kind: bridge.OpenCode, Version: "1.18.33", Routes: []proof.Result{{Route: proof.Wake, State: proof.Works}}})
	if got := obstacle(); got != before {
		t.Errorf("it works again: %q, before %q", got, before)
	}
}

// Who asks as the owner from inside an agent is that agent.
func TestCAN_02_AnAgentRecordsNoProofByTheOwnersCommand(t *testing.T) {
	b := newProofBench(t)
	b.join(api.Register{Name: "web", Kind: bridge.OpenCode, SessionID: "s1", AgentPID: os.Getppid(), HostKnown: true}) // the test's parent is an agent
	_, err := api.OpRecordProof.Call(t.Context(), b.dial(api.RoleOwner), wakeBroken("1.18.33"))
	wantCode(t, "inside an agent", err, bridge.Denied)
	if got := b.status().Proofs; len(got) != 0 {
		t.Errorf("recorded all the same: %+v", got)
	}
}
