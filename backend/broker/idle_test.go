package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// A turn that a person breaks off ends without a hook. Claude's own registry
// tells, and the words that wait for the end of that turn wake the session.
func TestCHT_03_ABrokenOffTurnDoesNotHoldUpTheOwnersWords(t *testing.T) {
	agentPID := os.Getppid()
	setup := func(t *testing.T, step func(point)) (b *bench, app peer, registry func(status string, at time.Time)) {
		b = newBench(t)
		b.pace, b.step = Timing{Doubt: time.Millisecond}, step
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
	b.pace = Timing{Doubt: time.Millisecond}
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

// queueing is a bench with a claude whose person has typed a prompt while it worked. The
// turn of that prompt begins without a hook (RWM-21).
func queueing(t *testing.T, pace Timing, withRegistry bool) (b *bench, app peer, registry func(status string, at time.Time)) {
	t.Helper()
	b = newBench(t)
	b.pace = pace
	b.restart()
	store := t.TempDir()
	if err := os.Mkdir(filepath.Join(store, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	registry = func(status string, at time.Time) {
		entry := fmt.Sprintf(`{"pid":%d,"sessionId":"s1","status":%q,"statusUpdatedAt":%d}`, os.Getppid(), status, at.UnixMilli())
		if err := os.WriteFile(filepath.Join(store, "sessions", fmt.Sprint(os.Getppid(), ".json")), []byte(entry), 0o600); err != nil { //nolint:forbidigo // a test's file
			t.Fatal(err)
		}
	}
	if withRegistry {
		registry("busy", time.Now().Add(-time.Minute))
	}
	app = b.join(api.Register{Name: "app", SessionID: "s1", AgentPID: os.Getppid(), HostKnown: true, CLIDataDir: store})
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", PromptID: "p1"}, true)
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", PromptID: "p1", Prompt: "typed meanwhile"}, true)
	return b, app, registry
}

func (b *bench) stateOf(id string) string {
	b.t.Helper()
	peers, err := b.broker.Peers(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range peers {
		if p.ID == id {
			return p.State
		}
	}
	return "gone"
}

func TestRWM_21_ASessionIsBusyInTheTurnOfAPromptThatWasTypedMeanwhile(t *testing.T) {
	stop := session.HookCall{Event: session.EventStop, SessionID: "s1", PromptID: "p1"}
	next := session.HookCall{Event: session.EventStop, SessionID: "s1", PromptID: "p2"}
	t.Run("until that turn ends", func(t *testing.T) {
		b, app, _ := queueing(t, Timing{}, true)
		b.hook(stop, true)
		if got := b.stateOf(app.ID); got != "busy" {
			t.Errorf("between the turns it is %s", got)
		}
		b.hook(next, true)
		if got := b.stateOf(app.ID); got != "idle" {
			t.Errorf("after both it is %s", got)
		}
	})
	t.Run("until claude says that there is none", func(t *testing.T) {
		b, app, registry := queueing(t, Timing{Doubt: time.Millisecond}, true)
		registry("idle", time.Now().Add(time.Minute)) // the person took the prompt back
		b.hook(stop, true)
		eventually(t, "it is idle", func() bool { return b.stateOf(app.ID) == "idle" })
	})
	t.Run("where claude says nothing of itself", func(t *testing.T) {
		b, app, registry := queueing(t, Timing{}, false)
		b.hook(stop, true)
		if got := b.stateOf(app.ID); got != "idle" {
			t.Errorf("nobody could say that there is no next turn, and it is %s", got)
		}
		registry("busy", time.Now().Add(time.Minute))
		b.broker.CheckChildren(app.ID)
		if got := b.stateOf(app.ID); got != "busy" {
			t.Errorf("claude says that it is busy, and it is %s", got)
		}
	})
	t.Run("its mod tells", func(t *testing.T) {
		b, app, _ := queueing(t, Timing{}, false)
		b.hook(stop, true)
		began := api.ModReport{Event: api.ModTurnStarted, SessionID: "s1", At: time.Now().Add(time.Second).UnixMilli()}
		if err := b.dial(api.RoleMod).ModReport(t.Context(), began); err != nil {
			t.Fatal(err)
		}
		if got := b.stateOf(app.ID); got != "busy" {
			t.Errorf("its mod tells of a turn, and it is %s", got)
		}
	})
	t.Run("before it is woken", func(t *testing.T) {
		b, app, registry := queueing(t, Timing{Doubt: time.Millisecond}, false)
		b.hook(stop, true)
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		registry("busy", time.Now().Add(time.Minute))
		waiting := b.wakeHook(false)
		eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
		eventually(t, "claude is asked", func() bool { return b.stateOf(app.ID) == "busy" })
		select {
		case reply := <-waiting:
			t.Errorf("a session at work was woken: %q", reply.Text)
		default:
		}
		registry("idle", time.Now().Add(2*time.Minute))
		if reply := <-waiting; !strings.Contains(reply.Text, "the owner's words") {
			t.Errorf("the wake says %q", reply.Text)
		}
	})
}

// The end of a turn that began before a wake's mail was given is no evidence that the
// model has seen that mail. Where the host loses it, the standby brings it.
func TestRWM_21_AnEndOfATurnProvesNothingOfMailGivenInItsMidst(t *testing.T) {
	b, app, _ := queueing(t, Timing{Confirm: 3 * time.Second}, false)
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1", PromptID: "p1"}, true)
	first := b.wakeHook(false)
	eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
	sent := b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
	if reply := <-first; !strings.Contains(reply.Text, "the owner's words") {
		t.Fatalf("the wake says %q", reply.Text)
	}
	eventually(t, "it is handed over", func() bool { return b.stage(sent.Message) == bridge.StageHanded })
	b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1", PromptID: "p2"}, false)
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1", PromptID: "p2"}, false)
	if got := b.stage(sent.Message); got == bridge.StageConsumed {
		t.Fatalf("the mail is %s, and the model was never asked", got)
	}
	standby := b.wakeHook(true)
	if reply := <-standby; !strings.Contains(reply.Text, "the owner's words") {
		t.Errorf("the standby says %q", reply.Text)
	}
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", PromptID: "p3", Prompt: "x " + sent.Message + " x"}, false)
	if got := b.stage(sent.Message); got != bridge.StageConsumed {
		t.Errorf("the mail that a prompt held is %s", got)
	}
}
