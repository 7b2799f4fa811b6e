package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

// childrenOf waits until the broker shows the children of a session so, one line
// each: id, state and title.
func (b *bench) childrenOf(name, want string) api.Peer {
	b.t.Helper()
	changes, stop := b.broker.Watch()
	defer stop()
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Patience)
	defer cancel()
	for {
		peers, err := b.broker.Peers(ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		got, found := "", api.Peer{}
		for _, p := range peers {
			if p.Name != name {
				continue
			}
			found = p
			for _, c := range p.Children {
				got += fmt.Sprintln(c.ID, c.State, c.Title)
			}
		}
		if got == want {
			return found
		}
		select {
		case <-changes:
		case <-ctx.Done():
			b.t.Fatalf("the children of %s are\n%swant\n%s", name, got, want)
		}
	}
}

// claudeStore is a store of claude with a described child of the session "s1".
func claudeStore(t *testing.T) (folder string, describe func(id, meta string)) {
	t.Helper()
	folder = t.TempDir()
	dir := filepath.Join(folder, "projects", "-work-shop", "s1", "subagents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder, func(id, meta string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "agent-"+id+".meta.json"), []byte(meta), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCHT_10_ChildrenFromBeforeTheBrokerAreFoundInTheStore(t *testing.T) {
	b := newBench(t)
	b.pace = Timing{PollInterval: time.Millisecond}
	b.restart()
	folder, describe := claudeStore(t)
	describe("c1", `{"agentType":"general-purpose","description":"find the bug"}`)
	app := b.join(api.Register{Name: "app", SessionID: "s1", CLIDataDir: folder})
	b.childrenOf("app", "c1 busy find the bug\n")
	describe("c1", `{"agentType":"general-purpose","description":"find the cause"}`)
	b.broker.CheckChildren(app.ID)
	b.childrenOf("app", "c1 busy find the cause\n")

	describe("c1", `{"agentType":"general-purpose","description":"find the bug","finished":true}`)
	b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
	b.childrenOf("app", "c1 done find the bug\n")

	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s1", ChildID: "c2", ChildTitle: "explorer"}, true)
	b.childrenOf("app", "c1 done find the bug\nc2 busy explorer\n")
	describe("c2", `{"agentType":"explorer","description":"look around"}`)
	b.broker.CheckChildren(app.ID)
	b.childrenOf("app", "c1 done find the bug\nc2 busy look around\n")

	describe("c1", `{"other":"form"}`)
	describe("c2", `{"other":"form"}`)
	b.broker.CheckChildren(app.ID)
	b.hook(session.HookCall{Event: session.EventChildStop, SessionID: "s1", ChildID: "c2"}, true)
	const both = "c1 done find the bug\nc2 done look around\n"
	changes, stop := b.broker.Watch()
	defer stop()
	for !strings.Contains(b.childrenOf("app", both).Detail, "form that this Bridge does not know") {
		<-changes
	}
}

func TestCHT_10_OnlyWhatChangesAChildIsTold(t *testing.T) {
	b := newBench(t)
	b.join(api.Register{Name: "app", SessionID: "s1"})
	for _, tt := range []struct {
		name        string
		call        session.HookCall
		changeCount int64
	}{
		{"a child begins", session.HookCall{Event: session.EventChildStart, ChildID: "c1", ChildTitle: "explorer"}, 1},
		{"it uses a tool", session.HookCall{Event: session.EventTool, ChildID: "c1"}, 0},
		{"it ends", session.HookCall{Event: session.EventChildStop, ChildID: "c1"}, 1},
		{"one that is refused", session.HookCall{Event: session.EventChildStart, ChildID: "s1"}, 0},
	} {
		before := b.broker.feed.Current()
		tt.call.SessionID = "s1"
		b.hook(tt.call, true)
		if changeCount := b.broker.feed.Current() - before; changeCount != tt.changeCount {
			t.Errorf("%s: %d changes are told, want %d", tt.name, changeCount, tt.changeCount)
		}
	}
}

func TestMSG_06_TheCallsOfChildrenAreRememberedWithinABound(t *testing.T) {
	b := newBench(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	b.broker.Lock()
	s, _ := b.broker.Roster.Get(app.ID)
	b.broker.Unlock()
	for i := range maxChildCalls + 1 {
		b.broker.children.noteChild(s, session.HookCall{Event: session.EventPreTool, ChildID: "c1", ToolUseID: fmt.Sprint(i)})
		if count := len(b.broker.children.calls.ids); count != i%maxChildCalls+1 {
			t.Fatalf("after %d calls %d are remembered", i+1, count)
		}
	}
	if !b.broker.children.calls.ids[fmt.Sprint(maxChildCalls)] {
		t.Error("the last call is not remembered")
	}
}

func TestCHT_10_AChildOfAnEndedProcessIsNotAtWork(t *testing.T) {
	b := newBench(t)
	b.pace = Timing{PollInterval: time.Millisecond}
	b.restart()
	folder, describe := claudeStore(t)
	describe("c1", `{"agentType":"x","description":"cut off"}`)
	long := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "projects", "-work-shop", "s1", "subagents", "agent-c1.meta.json"), long, long); err != nil {
		t.Fatal(err)
	}
	b.join(api.Register{Name: "app", SessionID: "s1", CLIDataDir: folder, AgentPID: os.Getpid()})
	b.childrenOf("app", "c1 done cut off\n")
}

func TestCHT_10_AChildOfThisProcessMayBeAtWork(t *testing.T) {
	at, err := proc.Started(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	if proc.Began(os.Getpid()) > at.UnixMilli() {
		t.Errorf("children from %d on are the process's, it began at %d", proc.Began(os.Getpid()), at.UnixMilli())
	}
}

// TestCHT_10_ALookThatCameTooLateTellsNothing: the session left while the store
// was read.
func TestCHT_10_ALookThatCameTooLateTellsNothing(t *testing.T) {
	b := newBench(t)
	folder, describe := claudeStore(t)
	describe("c1", `{"agentType":"x","description":"found"}`)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	b.broker.Lock()
	s, _ := b.broker.Roster.Get(app.ID)
	box := b.broker.Boxes[app.ID]
	s.CLIDataDir = folder
	b.broker.Unlock()
	b.broker.children.look(t.Context(), s, mailbox.New())
	b.childrenOf("app", "")
	b.broker.children.look(t.Context(), s, box)
	b.childrenOf("app", "c1 busy found\n")
}

func TestCHT_13_AStoreDecidesWhoseAChildIs(t *testing.T) {
	b := newBench(t)
	b.pace = Timing{PollInterval: time.Millisecond}
	b.restart()
	folder, describe := claudeStore(t)
	other := b.join(api.Register{Name: "other", SessionID: "s2"})
	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s2", ChildID: "c1", ChildTitle: "claimed"}, true)
	b.childrenOf("other", "c1 busy claimed\n")
	describe("c1", `{"agentType":"x","description":"ours"}`)
	b.join(api.Register{Name: "app", SessionID: "s1", CLIDataDir: folder})
	b.childrenOf("app", "c1 busy ours\n")
	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s2", ChildID: "c1", ChildTitle: "claimed"}, true)
	b.childrenOf("other", "")
	_, err := b.broker.Chat(t.Context(), chat.Request{Session: other.ID, Child: "c1", ToParent: true, Body: "x"})
	wantCode(t, "a note by the pair that was claimed", err, bridge.Conflict)
}
