package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// handing is a way in which mail comes to a host that may die with it.
type handing struct {
	name string
	kind bridge.AgentKind
	hand func(b *bench, host peer) string // the text that the host was given
}

var handings = []handing{
	{"hook", bridge.Claude, func(b *bench, _ peer) string {
		return b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true).Text
	}},
	{"codex's hook", bridge.Codex, func(b *bench, _ peer) string {
		return b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "s1"}, true).Text
	}},
	{"antigravity's hook", bridge.Antigravity, func(b *bench, _ peer) string {
		return b.hook(session.HookCall{Kind: bridge.Antigravity, Event: session.EventTool, SessionID: "s1"}, true).Text
	}},
	{"tool", bridge.Codex, func(b *bench, host peer) string {
		box, err := host.Inbox(b.t.Context(), api.InboxArgs{MarkRead: true})
		if err != nil || box.Lease == nil {
			b.t.Fatalf("inbox: %+v, %v", box, err)
		}
		host.ack(*box.Lease, bridge.StageHanded)
		return fmt.Sprint(bodies(box.Messages))
	}},
	{"wake hook", bridge.Claude, func(b *bench, _ peer) string {
		client := b.dial(api.RoleHook)
		defer client.Close()
		reply, err := client.WakeWait(b.t.Context(), api.WakeWait{Call: session.HookCall{Kind: bridge.Claude, Event: session.EventStop, SessionID: "s1"}})
		if err != nil || reply.Lease == nil {
			b.t.Fatalf("wake hook: %+v, %v", reply, err)
		}
		if err := client.Ack(b.t.Context(), api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaWakeHook}); err != nil {
			b.t.Fatal(err)
		}
		return reply.Text
	}},
	{"channel", bridge.Claude, func(b *bench, host peer) string {
		if got := b.push(host); got != 1 {
			b.t.Fatalf("the channel is given %d messages", got)
		}
		return ownersWords
	}},
}

const ownersWords = "the owner's words"

// comeback is how a session shows itself again after its process died.
type comeback struct {
	name string
	call func(b *bench, kind bridge.AgentKind)
}

var comebacks = []comeback{
	{"start", func(b *bench, kind bridge.AgentKind) {
		b.hook(session.HookCall{Kind: kind, Event: session.EventStart, Source: "startup", SessionID: "s1"}, true)
	}},
	{"resume", func(b *bench, kind bridge.AgentKind) {
		b.hook(session.HookCall{Kind: kind, Event: session.EventStart, Source: "resume", SessionID: "s1"}, true)
	}},
	{"registration", func(*bench, bridge.AgentKind) {}},
}

func (b *bench) host(kind bridge.AgentKind, process, store string) peer {
	return b.join(api.Register{Kind: kind, Name: "host", SessionID: "s1", Process: process, Channel: true, Hooks: true, CLIDataDir: store})
}

// TestMSG_06_ARestartIsNoReading: the host dies between the hand-over and its next
// step, and whatever its session shows first afterwards says nothing of it.
func TestMSG_06_ARestartIsNoReading(t *testing.T) {
	for _, h := range handings {
		for _, c := range comebacks {
			for _, brokerToo := range []bool{false, true} {
				t.Run(fmt.Sprintf("MSG-06 %s, %s, broker restarted %t", h.name, c.name, brokerToo), func(t *testing.T) {
					b := newBench(t)
					first := b.host(h.kind, "1:boot:100", "")
					sent := b.ownerSends(first)
					if text := h.hand(b, first); !strings.Contains(text, ownersWords) {
						t.Fatalf("it was given %q", text)
					}
					requireStage(t, b, sent, bridge.StageHanded)
					b.leaves(first)
					if brokerToo {
						b.restart()
					}
					second := b.host(h.kind, "2:boot:200", "")
					c.call(b, h.kind)
					requireStage(t, b, sent, bridge.StageDurable, bridge.StageWoken)
					if got := second.read(); len(got) != 1 || got[0] != ownersWords {
						t.Errorf("the new process is offered %q", got)
					}
					requireStage(t, b, sent, bridge.StageConsumed)
				})
			}
		}
	}
}

// TestMSG_06_TheSameProcessReadOn: a broker's restart, a reloaded server, a
// compaction and a cleared context are no new process.
func TestMSG_06_TheSameProcessReadOn(t *testing.T) {
	hook := func(event session.Event, source string) func(*bench, bridge.AgentKind) {
		return func(b *bench, kind bridge.AgentKind) {
			b.hook(session.HookCall{Kind: kind, Event: event, Source: source, SessionID: "s1"}, true)
		}
	}
	for name, sign := range map[string]func(*bench, bridge.AgentKind){
		"a step": hook(session.EventTool, ""), "the end of its turn": hook(session.EventStop, ""), "a compaction": hook(session.EventStart, "compact"),
		"a cleared context": hook(session.EventStart, "clear"),
	} {
		for _, between := range []string{"nothing", "broker", "reload", "both"} {
			t.Run("MSG-06 "+name+" after "+between, func(t *testing.T) {
				b := newBench(t)
				first := b.host(bridge.Claude, "1:boot:100", "")
				sent := b.ownerSends(first)
				handings[0].hand(b, first)
				if between == "reload" || between == "both" {
					b.leaves(first)
				}
				if between == "broker" || between == "both" {
					b.restart()
				}
				if between != "nothing" {
					b.host(bridge.Claude, "1:boot:100", "")
				}
				requireStage(t, b, sent, bridge.StageHanded)
				sign(b, bridge.Claude)
				requireStage(t, b, sent, bridge.StageConsumed)
			})
		}
	}
}

// TestMSG_06_AnEndIsNoReading, and neither is a start before its server registers.
func TestMSG_06_AnEndIsNoReading(t *testing.T) {
	b := newBench(t)
	first := b.host(bridge.Claude, "1:boot:100", "")
	sent := b.ownerSends(first)
	handings[0].hand(b, first)
	b.hook(session.HookCall{Event: session.EventEnd, SessionID: "s1"}, true)
	requireStage(t, b, sent, bridge.StageHanded)
	b.join(api.Register{Name: "other", AgentPID: os.Getppid()}) // the test's parent is an agent
	b.hook(session.HookCall{Event: session.EventStart, Source: "startup", SessionID: "s1"}, true)
	requireStage(t, b, sent, bridge.StageDurable)
}

// TestMSG_06_WhatTheResumedHostHoldsIsNotShownTwice, and what it does not hold is.
func TestMSG_06_WhatTheResumedHostHoldsIsNotShownTwice(t *testing.T) {
	for _, holds := range []bool{true, false} {
		t.Run(fmt.Sprintf("MSG-06 it holds the text: %t", holds), func(t *testing.T) {
			b := newBench(t)
			store := t.TempDir()
			first := b.host(bridge.Claude, "1:boot:100", store)
			sent := b.ownerSends(first)
			text := handings[0].hand(b, first)
			line := `{"type":"attachment","attachment":{"type":"hook_additional_context","content":["` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(text) + `"]}}`
			if !holds {
				line = `{"type":"user","message":{"content":"` + sent + ` was mentioned"}}`
			}
			folder := filepath.Join(store, "projects", "-work-shop")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "s1.jsonl"), []byte(line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.leaves(first)
			second := b.host(bridge.Claude, "2:boot:200", store)
			got := second.read()
			row, err := b.db.Find(t.Context(), sent)
			if err != nil {
				t.Fatal(err)
			}
			consumed := row.Deliveries[0].Consumed
			if holds && (len(got) != 0 || consumed.Via != mail.ViaTranscript) {
				t.Errorf("it is shown %q again; consumed %+v", got, consumed)
			}
			if !holds && (len(got) != 1 || consumed.Via != mail.ViaTool) {
				t.Errorf("it is shown %q; consumed %+v", got, consumed)
			}
		})
	}
}

// TestMSG_06_WhatWentToAQueueStaysThere: codex keeps its queue over a restart.
func TestMSG_06_WhatWentToAQueueStaysThere(t *testing.T) {
	b := newBench(t)
	first := b.host(bridge.Codex, "1:boot:100", "")
	message := bridge.Message{ID: "q1", Recipient: first.ID, From: bridge.OwnerAddress(), To: "host", ConversationID: "q1", Body: ownersWords, CreatedAt: 1}
	if err := b.db.AppendWithHandover(t.Context(), message, mail.ViaQueue, ""); err != nil {
		t.Fatal(err)
	}
	older := bridge.Message{ID: "h1", Recipient: first.ID, From: bridge.OwnerAddress(), To: "host", ConversationID: "h1", Body: "by an older program", CreatedAt: 1}
	if _, _, err := b.db.Append(t.Context(), []bridge.Message{older}); err != nil {
		t.Fatal(err)
	}
	if err := b.db.Record(t.Context(), bridge.StageHanded, []mail.Mark{{MessageID: "h1", Recipient: first.ID, At: 1, Evidence: "hook Stop"}}); err != nil {
		t.Fatal(err)
	}
	b.leaves(first)
	// A hand-over that names no process was before a process that began after it.
	second := b.join(api.Register{Kind: bridge.Codex, Name: "host", SessionID: "s1", AgentPID: os.Getpid(), HostKnown: true})
	if got := second.read(); len(got) != 1 || got[0] != older.Body {
		t.Errorf("it is shown %q, want what is in no queue", got)
	}
	requireStage(t, b, "q1", bridge.StageHanded)
}

// ownerSends puts the owner's words into the session's mail.
func (b *bench) ownerSends(recipient peer) string {
	b.t.Helper()
	owner := b.dial(api.RoleOwner)
	defer owner.Close()
	sent, err := owner.Send(b.t.Context(), api.SendArgs{To: recipient.ID, Body: ownersWords})
	if err != nil {
		b.t.Fatal(err)
	}
	return sent.ID
}

// leaves ends the connection of a session and waits until the broker knows.
func (b *bench) leaves(p peer) {
	b.t.Helper()
	p.Close()
	eventually(b.t, "the session has left", func() bool {
		b.broker.Lock()
		defer b.broker.Unlock()
		_, live := b.broker.Roster.Get(p.ID)
		return !live
	})
}

func requireStage(t *testing.T, b *bench, message string, want ...bridge.Stage) {
	t.Helper()
	got := b.stage(message)
	for _, stage := range want {
		if got == stage {
			return
		}
	}
	row, _ := b.db.Find(t.Context(), message)
	t.Fatalf("it is %s, want one of %s: %+v", got, want, row.Deliveries)
}

// After a broker's death the server of a process that has ended may reach the next broker
// before that of the process which was handed the mail, and goes on: what that one saw is
// neither shown to it again, nor read by the other.
func TestMSG_06_AProcessThatIsYetToComeKeepsItsMail(t *testing.T) {
	goesOn := proc.Name(os.Getpid()).Name
	if goesOn == "" {
		t.Skip("this system does not name processes for good")
	}
	for _, h := range handings {
		t.Run(h.name, func(t *testing.T) {
			b := newBench(t)
			first := b.host(h.kind, goesOn, "")
			sent := b.ownerSends(first)
			h.hand(b, first)
			b.restart()
			b.host(h.kind, "1:boot:100", "")
			if h.name != "wake hook" && h.name != "channel" { // those are judged by the steps of a turn
				b.hook(session.HookCall{Kind: h.kind, Event: session.EventTool, SessionID: "s1"}, true)
			}
			requireStage(t, b, sent, bridge.StageHanded)
			successor := b.host(h.kind, goesOn, "")
			if got := successor.read(); len(got) != 0 {
				t.Errorf("the process that saw it is offered %q", got)
			}
			requireStage(t, b, sent, bridge.StageConsumed)
		})
	}
}

// TestMSG_06_AKeptReceiptNamesTheProcess: neither broker nor host heard more.
func TestMSG_06_AKeptReceiptNamesTheProcess(t *testing.T) {
	for _, process := range []string{"1:boot:100", "2:boot:200"} {
		b := newBench(t)
		first := b.host(bridge.Claude, "1:boot:100", "")
		sent := b.ownerSends(first)
		reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, false)
		b.stop()
		ack := api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaHook, Detail: "PostToolUse"}
		if err := (ipc.Journal{Dir: b.home.ReadJournal()}).Keep(ack, b.now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.host(bridge.Claude, process, "")
		got := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true).Text
		want := map[string]bridge.Stage{"1:boot:100": bridge.StageConsumed, "2:boot:200": bridge.StageHanded}[process]
		requireStage(t, b, sent, want)
		if isShown := strings.Contains(got, ownersWords); isShown != (want == bridge.StageHanded) {
			t.Errorf("process %s is shown %q", process, got)
		}
	}
}
