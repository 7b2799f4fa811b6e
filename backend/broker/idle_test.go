package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/chat"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// A turn that a person breaks off ends without a hook. Claude's own registry
// tells, and the words that wait for the end of that turn wake the session.
func TestCHT_03_ABrokenOffTurnDoesNotHoldUpTheOwnersWords(t *testing.T) {
	agentPID := os.Getppid()
	setup := func(t *testing.T, step func(point)) (b *bench, app peer, registry func(status string, at time.Time)) {
		b = newBench(t)
		b.pace, b.step = Pace{Doubt: time.Millisecond}, step
		b.restart()
		store := t.TempDir()
		if err := os.Mkdir(filepath.Join(store, "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
		app = b.join(api.Register{Name: "app", SessionID: "s1", AgentPID: agentPID, HostKnown: true, CLIDataDir: store})
		b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
		return b, app, func(status string, at time.Time) {
			entry := fmt.Sprintf(`{"pid":%d,"sessionId":"s1","status":%q,"statusUpdatedAt":%d}`, agentPID, status, at.UnixMilli())
			if err := os.WriteFile(filepath.Join(store, "sessions", fmt.Sprint(agentPID, ".json")), []byte(entry), 0o600); err != nil { //nolint:forbidigo // a test's file
				t.Fatal(err)
			}
		}
	}
	state := func(b *bench) string {
		peers, err := b.broker.Peers(b.t.Context())
		if err != nil || len(peers) != 1 {
			b.t.Fatalf("peers: %+v, %v", peers, err)
		}
		return peers[0].State
	}
	t.Run("it is broken off after the words came", func(t *testing.T) {
		b, app, registry := setup(t, nil)
		registry("busy", time.Now())
		waiting := b.wakeHook(false)
		eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		if got := state(b); got != "busy" {
			t.Errorf("a session at work is %s", got)
		}
		registry("idle", time.Now().Add(time.Minute))
		if reply := <-waiting; !strings.Contains(reply.Text, "the owner's words") {
			t.Errorf("the wake says %q", reply.Text)
		}
	})
	t.Run("it was broken off before", func(t *testing.T) {
		b, app, registry := setup(t, nil)
		registry("idle", time.Now().Add(time.Minute))
		outcome := b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		if got := state(b); got != "idle" || !strings.Contains(outcome.Detail, "wake hook") {
			t.Errorf("the session is %s, and the owner is told %q", got, outcome.Detail)
		}
	})
	t.Run("the registry told the end of the turn before, late", func(t *testing.T) {
		written := make(chan struct{})
		b, app, registry := setup(t, func(at point) {
			if at == doubting {
				<-written
			}
		})
		late := time.Now().Add(time.Minute)
		registry("idle", late)
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		if got := state(b); got != "idle" {
			t.Errorf("at first the session is %s", got)
		}
		registry("busy", late.Add(time.Millisecond)) // before it is asked again
		close(written)
		eventually(t, "the turn goes on", func() bool { return state(b) == "busy" })
	})
	t.Run("the registry is behind the hooks", func(t *testing.T) {
		b, app, registry := setup(t, nil)
		registry("idle", time.Now().Add(-time.Minute))
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		if got := state(b); got != "busy" {
			t.Errorf("the session is %s", got)
		}
	})
}

// A slow claude says that a turn has ended when the next one is under way, by a clock
// that it read then: its own registry knows better.
func TestJOB_01_ALateWordOfATurnsEndIsHeldAgainstTheRegistry(t *testing.T) {
	agentPID := os.Getppid()
	b := newBench(t)
	b.pace = Pace{Doubt: time.Millisecond}
	b.restart()
	store := t.TempDir()
	if err := os.Mkdir(filepath.Join(store, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	registry := func(status string, at time.Time) {
		entry := fmt.Sprintf(`{"pid":%d,"sessionId":"s1","status":%q,"statusUpdatedAt":%d}`, agentPID, status, at.UnixMilli())
		if err := os.WriteFile(filepath.Join(store, "sessions", fmt.Sprint(agentPID, ".json")), []byte(entry), 0o600); err != nil { //nolint:forbidigo // a test's file
			t.Fatal(err)
		}
	}
	app := b.join(api.Register{Name: "app", SessionID: "s1", AgentPID: agentPID, HostKnown: true, CLIDataDir: store})
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
	registry("idle", time.Now().Add(-time.Minute)) // of the turn before
	m := b.mod("s1")
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	s, _ := b.broker.Roster.Get(app.ID)
	for _, status := range []string{"an old idle", "busy"} {
		if !b.broker.IsBusy(s) {
			t.Fatalf("with %s in the registry the turn counts as ended", status)
		}
		registry("busy", time.Now())
		m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	}
	registry("idle", time.Now().Add(time.Minute)) // a person broke it off
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	if b.broker.IsBusy(s) {
		t.Error("the turn that was broken off counts as under way")
	}
}
