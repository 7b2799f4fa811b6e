package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// pileUp gives a session more mail that wakes nobody than a hook looks at.
func pileUp(from peer, to string) {
	for i := range hookScan + 10 {
		from.mustSend(api.SendArgs{To: to, Body: fmt.Sprint("note ", i), ConversationID: fmt.Sprintf("c%d:note", i)})
	}
}

func TestMSG_06_AWaitFindsItsMessageBehindAnyOther(t *testing.T) {
	b := newBench(t)
	from, peer := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "to"})
	pileUp(from, "to")
	from.mustSend(api.SendArgs{To: "to", Body: "the answer", ConversationID: "talk"})
	found, err := peer.Wait(t.Context(), api.WaitArgs{TimeoutMillis: 100_000, ConversationID: "talk"})
	if err != nil || found.Message == nil || found.Message.Body != "the answer" {
		t.Errorf("the wait brought %+v, %v", found, err)
	}
}

// Whatever waits in front of it, mail that may wake a session does.
func TestCHT_18_QuietMailDoesNotStandBeforeWhatWakes(t *testing.T) {
	t.Run("MSG-07 the end of a turn", func(t *testing.T) {
		b := newBench(t)
		from := b.join(api.Register{Name: "from"})
		b.join(api.Register{Name: "app", SessionID: "s1"})
		pileUp(from, "app")
		stop := session.HookCall{Event: session.EventStop, SessionID: "s1"}
		if reply := b.hook(stop, true); reply.Text != "" {
			t.Fatalf("quiet mail kept the turn going: %q", reply.Text)
		}
		from.mustSend(api.SendArgs{To: "app", Body: "look at this"})
		reply := b.hook(stop, true)
		if !strings.Contains(reply.Text, "look at this") || !strings.Contains(reply.Text, "note 0") {
			t.Errorf("the stop shows %q, want what keeps the turn going and the oldest of the rest", reply.Text)
		}
	})
	t.Run("CHT-04 codex's queue", func(t *testing.T) {
		b := newBench(t)
		b.quick()
		arrived := b.codex("exit 0")
		from := b.join(api.Register{Name: "from"})
		b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
		b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t1"}, true)
		pileUp(from, "web")
		sent := from.mustSend(api.SendArgs{To: "web", Body: "look at this"})
		eventually(t, "the wake is noted", func() bool { return b.stage(sent.ID) == bridge.StageWoken })
		if got := arrived(); len(got) != 1 {
			t.Errorf("codex was asked %d times", len(got))
		}
		if reply := b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "t1"}, true); !strings.Contains(reply.Text, "look at this") {
			t.Errorf("the woken turn shows %q", reply.Text)
		}
	})
	t.Run("CHT-03 claude's wake hook", func(t *testing.T) {
		b := newBench(t)
		from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
		b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
		pileUp(from, "app")
		waiting := b.wakeHook(false)
		eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		if reply := <-waiting; !strings.Contains(reply.Text, "the owner's words") {
			t.Errorf("the wake says %q", reply.Text)
		}
	})
	t.Run("CHT-03 claude's channel", func(t *testing.T) {
		b := newBench(t)
		from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", Channel: true})
		pileUp(from, "app")
		b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
		inbox, err := app.Take(t.Context(), api.Caller{})
		if err != nil || !strings.Contains(strings.Join(bodies(inbox.Messages), "\n"), "the owner's words") {
			t.Errorf("the channel is given %q, %v", bodies(inbox.Messages), err)
		}
	})
}

func TestCHT_09_ThePromptIsTheReceiptBehindAnyOtherMail(t *testing.T) {
	b := newBench(t)
	b.codex("exit 0")
	from := b.join(api.Register{Name: "from"})
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	for range queuedScan + 1 {
		from.mustSend(api.SendArgs{To: "web", Body: "a note", ConversationID: "c:note"})
	}
	b.chat(chat.Request{Session: web.ID, Body: "the words", MessageID: "m-1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "t1", Prompt: chat.OwnerLabel + "the words"}, true)
	if got := b.stage("m-1"); got != bridge.StageConsumed {
		t.Errorf("its own prompt made it %s, want consumed", got)
	}
}

// tooLong is what no hook shows whole.
var tooLong = strings.Repeat("x", 20_000)

const announcement = "A long message (20000 characters"

// announces has a wake hook of the session s1 tell of a message that no hook shows.
func (b *bench) announces(app peer) (text string) {
	b.t.Helper()
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	waiting := b.wakeHook(false)
	eventually(b.t, "the hook waits", func() bool { return b.waits(app.ID, false) })
	b.chat(chat.Request{Session: app.ID, Body: tooLong, MessageID: "m-1"})
	reply := <-waiting
	if strings.Count(reply.Text, announcement) != 1 || !strings.Contains(reply.Text, "m-1") {
		b.t.Fatalf("the wake says %q, want an announcement", reply.Text)
	}
	eventually(b.t, "the session counts as told", func() bool {
		b.broker.Lock()
		defer b.broker.Unlock()
		return b.broker.Boxes[app.ID].Announced()["m-1"]
	})
	return reply.Text
}

func TestCHT_03_AnAnnouncementThatWasShownIsNotMadeAgain(t *testing.T) {
	b := newBench(t)
	pass := b.clock()
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	text := b.announces(app)
	for _, call := range []session.HookCall{
		{Event: session.EventPrompt, SessionID: "s1", Prompt: text},
		{Event: session.EventTool, SessionID: "s1"},
		{Event: session.EventStop, SessionID: "s1"},
		{Event: session.EventPrompt, SessionID: "s1", Prompt: "something else"},
	} {
		if reply := b.hook(call, true); reply.Text != "" {
			t.Errorf("%s says %q", call.Event, reply.Text)
		}
		pass(time.Minute)
	}
}

func TestCHT_03_LongWordsWakeAnIdleClaudeToo(t *testing.T) {
	b := newBench(t)
	pass := b.clock()
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	b.announces(app)
	if got := b.stage("m-1"); got != bridge.StageWoken {
		t.Errorf("the announcement made it %s, want woken", got)
	}
	t.Run("a dropped wake is made good by a later prompt", func(t *testing.T) {
		pass(time.Minute)
		prompt := session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: "something else"}
		if reply := b.hook(prompt, true); strings.Count(reply.Text, announcement) != 1 {
			t.Errorf("the next prompt says %q, want the announcement", reply.Text)
		}
		if reply := b.hook(prompt, true); reply.Text != "" {
			t.Errorf("the prompt after it says %q again", reply.Text)
		}
	})
	wantBodies(t, "the inbox", app.read(), tooLong)
	if got := b.stage("m-1"); got != bridge.StageConsumed {
		t.Errorf("in the end: %s, want consumed", got)
	}
}

func TestMSG_06_AnAnnouncementThatReachedNobodyIsMadeAgain(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	from.mustSend(api.SendArgs{To: "app", Body: tooLong})
	tool := session.HookCall{Event: session.EventTool, SessionID: "s1"}
	if reply := b.hook(tool, false); !strings.Contains(reply.Text, announcement) { // the hook died before it wrote
		t.Fatalf("the hook says %q", reply.Text)
	}
	var reply session.HookReply
	eventually(t, "the announcement is made again", func() bool {
		reply = b.hook(tool, true)
		return strings.Contains(reply.Text, announcement)
	})
	if reply := b.hook(tool, true); reply.Text != "" {
		t.Errorf("once it was heard it says %q again", reply.Text)
	}
	wantBodies(t, "the inbox", app.read(), tooLong)
}

func TestDEC_11_WhatWasAnnouncedKeepsNoTurnRunning(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	b.join(api.Register{Name: "app", SessionID: "s1"})
	for range hookScan + 1 { // each is told of once and waits for the inbox
		from.mustSend(api.SendArgs{To: "app", Body: tooLong})
	}
	for range hookScan + 1 {
		b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
	}
	if _, err := from.Decide(t.Context(), api.DecideArgs{Topic: "t", Text: "a quiet decision"}); err != nil {
		t.Fatal(err)
	}
	if reply := b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true); reply.Text != "" {
		t.Errorf("a decision kept the turn going: %q", reply.Text)
	}
	if reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true); !strings.Contains(reply.Text, "a quiet decision") {
		t.Errorf("the next prompt shows %q, want the decision", reply.Text)
	}
}
