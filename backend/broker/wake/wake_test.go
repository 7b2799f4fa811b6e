package wake

import (
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

func TestTheUsualPace(t *testing.T) {
	usual := Timing{Debounce: 1500 * time.Millisecond, Confirm: 20 * time.Second, Settle: 10 * time.Second, Doubt: 15 * time.Second, PollInterval: 500 * time.Millisecond}
	if got := (Timing{}).OrUsual(); got != usual {
		t.Errorf("nothing said: %+v, want %+v", got, usual)
	}
	own := Timing{Debounce: 1, Confirm: 2, Settle: 3, Doubt: 4, PollInterval: 5}
	if got := own.OrUsual(); got != own {
		t.Errorf("all said: %+v, want %+v", got, own)
	}
}

func TestCHT_04_TheStatesOfAWakeByQueue(t *testing.T) {
	const minute = 60_000
	steps := func(results ...chat.QueueResult) Queue {
		var q Queue
		for _, result := range results {
			q.scheduled = true
			q.Pushed(result, 0)
		}
		return q
	}
	for _, tt := range []struct {
		name string
		q    Queue
		now  int64
		want QueueState
	}{
		{"new", Queue{}, 0, QueueIdle},
		{"nothing to wake for", steps(""), 0, QueueIdle},
		{"refused", steps(chat.QueueRefused), 0, QueueIdle},
		{"too old a CLI", steps(chat.QueueUnsupported), 0, QueueIdle},
		{"accepted", steps(chat.QueueAccepted), 2*minute - 1, QueueOutstanding},
		{"accepted long ago", steps(chat.QueueAccepted), 2 * minute, QueueIdle},
		{"accepted twice", steps(chat.QueueAccepted, chat.QueueAccepted), 100 * minute, QueueFull},
		{"unclear", steps(chat.QueueUnclear), 100 * minute, QueueFull},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.q.State(tt.now); got != tt.want {
				t.Errorf("state %d, want %d", got, tt.want)
			}
			if got := tt.q.Schedule(tt.now); got != (tt.want == QueueIdle) {
				t.Errorf("a wake may be asked for: %t", got)
			}
			if tt.want == QueueIdle && (tt.q.State(tt.now) != QueueScheduled || tt.q.Schedule(tt.now)) {
				t.Error("a scheduled wake is not joined")
			}
			tt.q.Pushed("", tt.now)
			if tt.q.Active(); tt.q.State(tt.now) != QueueIdle {
				t.Errorf("after a sign: state %d", tt.q.State(tt.now))
			}
		})
	}
}

func TestCHT_19_WhatAQueueMadeOfThePush(t *testing.T) {
	var q Queue
	for _, tt := range []struct {
		result chat.QueueResult
		want   string
	}{
		{chat.QueueRefused, "codex's queue did not take what it was given last: why."},
		{chat.QueueUnclear, "It is not known whether codex's queue took what it was given last: why."},
		{chat.QueueAccepted, ""},
	} {
		if q.Note(tt.result, "why"); q.Problem() != tt.want {
			t.Errorf("%s: %q", tt.result, q.Problem())
		}
	}
}

func message(id string) mail.Delivery { return mail.Delivery{Message: bridge.Message{ID: id}} }

func TestMSG_06_CHT_03_TheStatesOfAWakeByHookOrChannel(t *testing.T) {
	h := NewHooks()
	if !h.Open() {
		t.Error("an earlier broker may have given some")
	}
	h.Judged(false)
	h.Give(mail.Presentation{Shown: []mail.Delivery{message("whole")}, Announced: []mail.Delivery{message("long")}}, 5)
	h.Push([]string{"pushed"}, 7)
	for id, want := range map[string]HookState{"whole": HookNone, "long": HookAnnounced, "pushed": HookPushed, "other": HookNone} {
		if got := h.State(id); got != want {
			t.Errorf("%s: state %d, want %d", id, got, want)
		}
	}
	if h.Judged(false); !h.Open() || h.Announced()["long"] != 5 {
		t.Errorf("what is only announced is judged: open %t, %v", h.Open(), h.Announced())
	}
	if got := h.Dropped("pushed"); got != HookPushed || h.State("pushed") != HookNone {
		t.Errorf("dropped from %d", got)
	}
	if h.Shown("long"); h.State("long") != HookNone {
		t.Error("shown, and still announced")
	}
	if h.Judged(false); h.Open() {
		t.Error("all is judged, and something is open")
	}
	for via, want := range map[mail.Via]bool{mail.ViaHook: false, mail.ViaTool: false, mail.ViaChannel: true, mail.ViaWakeHook: true} {
		var h Hooks
		if h.Handed(via); h.Open() != want {
			t.Errorf("handed by %s: open %t", via, h.Open())
		}
	}
}

func TestCHT_03_TheFirstHookTriesTheStandbyOnceMoreNobodyAThirdTime(t *testing.T) {
	h := NewHooks()
	for n, want := range [][2]bool{{true, false}, {false, true}, {false, false}} {
		if got := [2]bool{h.For(false)(message("m")), h.For(true)(message("m"))}; got != want {
			t.Errorf("after %d tries it is for first and standby: %v, want %v", n, got, want)
		}
		h.Give(mail.Presentation{Shown: []mail.Delivery{message("m")}}, 1)
	}
	if h.Forget("m"); !h.For(false)(message("m")) {
		t.Error("another process is not given what an earlier one was")
	}
}

func TestCHT_03_ANewerHookTakesThePlaceOfItsRole(t *testing.T) {
	var h Hooks
	first, standby := h.Wait(false), h.Wait(true)
	newer := h.Wait(false)
	select {
	case <-first:
	default:
		t.Error("the older hook still waits")
	}
	select {
	case <-standby:
		t.Error("the hook of the other role was superseded")
	default:
	}
	if h.Leave(false, first) || !h.WaitsAs(false) {
		t.Error("a superseded hook gave the place up")
	}
	if !h.Leave(false, newer) || h.WaitsAs(false) || !h.Waits() || !h.Leave(true, standby) || h.Waits() {
		t.Error("who left still waits")
	}
}

func TestCHT_20_ATurnMayBeAboutToBegin(t *testing.T) {
	var h Hooks
	h.Push([]string{"m"}, 100)
	for _, tt := range []struct {
		lastActive, now int64
		want            bool
	}{{99, 119, true}, {99, 120, false}, {100, 119, false}} {
		if got := h.TurnMayStart(tt.lastActive, tt.now, 20); got != tt.want {
			t.Errorf("last sign %d, now %d: %t", tt.lastActive, tt.now, got)
		}
	}
}

func TestMSG_06_SignsAreThoseBeforeThisOne(t *testing.T) {
	var h Hooks
	h.Sign(session.HookCall{Event: session.EventTool}, 0, 9, 10)
	h.Sign(session.HookCall{Event: session.EventStop}, 10, 9, 20)
	if got, want := h.Sign(session.HookCall{Event: session.EventTool}, 20, 9, 30), (mail.Signs{Active: 20, Step: 10, Stop: 20, Settle: 9}); got != want {
		t.Errorf("signs %+v, want %+v", got, want)
	}
}

// A prompt that is typed in a turn comes with the id of that turn. The turn that begins
// with it has another id, and no hook tells of its start.
func TestRWM_21_TheTurnOfATypedPromptBeganWhenTheTurnBeforeEnded(t *testing.T) {
	var h Hooks
	now := int64(0)
	turn := func(event session.Event, prompt, source string) int64 {
		now += 10
		return h.Sign(session.HookCall{Event: event, PromptID: prompt, Source: source}, 0, 0, now).Turn
	}
	for i, tt := range []struct {
		event          session.Event
		prompt, source string
		turn           int64
		hasNext        bool
	}{
		{session.EventPrompt, "p1", "", 0, false},
		{session.EventTool, "p1", "", 10, false},
		{session.EventPrompt, "p1", "", 10, true}, // typed meanwhile
		{session.EventStop, "p1", "", 10, true},   // at 40
		{"", "", "", 40, true},                    // a tool call without an event
		{session.EventTool, "p2", "", 40, false},
		{session.EventStop, "p2", "", 40, false},
		{session.EventPrompt, "p3", "", 0, false},
		{session.EventPrompt, "p3", "", 80, true},
		{session.EventStart, "", "compact", 70, true},
		{session.EventInterrupt, "p3", "", 80, false},
		{session.EventPrompt, "p4", "", 0, false},
		{session.EventPrompt, "p4", "", 120, true},
		{session.EventStart, "", "clear", 70, false},
		{session.EventTool, "", "", 0, false}, // a host that does not say
	} {
		if got := turn(tt.event, tt.prompt, tt.source); got != tt.turn || h.HasNext() != tt.hasNext {
			t.Errorf("sign %d, %s of %s: its turn began at %d, want %d; another follows: %t, want %t", i, tt.event, tt.prompt, got, tt.turn, h.HasNext(), tt.hasNext)
		}
	}
}

func wantState(t *testing.T, m Mod, what string, want ModState) {
	t.Helper()
	if got := m.State(); got != want {
		t.Fatalf("%s: state %d, want %d", what, got, want)
	}
}

func TestCHT_20_TheStatesOfAMod(t *testing.T) {
	older, mod, m := &ModLink{Number: 1}, &ModLink{Number: 2}, NewMod()
	state := func(what string, want ModState) { t.Helper(); wantState(t, m, what, want) }
	state("new", ModAbsent)
	if changed, ok := m.Hello(mod, "s1", true); !changed || !ok || !m.IsIn("s1") || m.IsIn("s2") {
		t.Errorf("a first hello: %t, %t", changed, ok)
	}
	state("it came in a turn", ModInTurn)
	if changed, ok := m.Hello(mod, "s1", false); changed || !ok {
		t.Errorf("a second hello: %t, %t", changed, ok)
	}
	if _, ok := m.Hello(older, "s1", false); ok {
		t.Error("an older mod took its place")
	}
	if !m.TurnEnded(5) {
		t.Error("the end of the turn is not believed")
	}
	state("the turn has ended", ModFree)
	m.Give("a")
	state("it has a message", ModEntering)
	if m.Awaited() != "a" || m.Tries()["a"] != 1 || !m.Open() {
		t.Errorf("awaited %q, tries %v, open %t", m.Awaited(), m.Tries(), m.Open())
	}
	m.Resolved("b")
	state("another message is settled", ModEntering)
	m.Judged(false)
	if !m.Open() {
		t.Error("a message is out, and nothing is open")
	}
	m.Resolved("a")
	state("its message is settled", ModFree)
	if m.Judged(false); m.Open() {
		t.Error("all is judged, and something is open")
	}
}

func TestCHT_20_AModMayGoToAnotherConversation(t *testing.T) {
	older, mod, newer, m := &ModLink{Number: 1}, &ModLink{Number: 2}, &ModLink{Number: 3}, NewMod()
	m.Hello(mod, "s1", true)
	if changed, ok := m.Hello(mod, "s2", false); !changed || !ok || !m.IsIn("s2") || m.State() != ModFree {
		t.Errorf("its second conversation: %t, %t, state %d", changed, ok, m.State())
	}
	if !m.Is(mod) || m.Is(older) {
		t.Error("another connection is its mod")
	}
	if _, ok := m.Hello(newer, "s2", false); !ok || !m.Is(newer) || m.Is(mod) {
		t.Error("a newer mod does not take the place")
	}
}

func TestCHT_20_AnyCallOfATurnShowsThatItRuns(t *testing.T) {
	for event, want := range map[session.Event]bool{
		session.EventPrompt: true, session.EventTool: true, session.EventPreTool: true, session.EventStop: false, session.EventChildStop: false,
	} {
		m := NewMod()
		if m.Sign(session.HookCall{Event: event}, 10); m.InTurn() != want {
			t.Errorf("%s: in a turn %t", event, m.InTurn())
		}
	}
	m := NewMod()
	m.Sign(session.HookCall{Event: session.EventPrompt}, 10)
	if m.Sign(session.HookCall{Event: session.EventEnd}, 11); m.InTurn() {
		t.Error("the turn of an ended session runs")
	}
	m.Sign(session.HookCall{Event: session.EventPrompt}, 12)
	if !m.TurnEnded(12) || m.InTurn() {
		t.Error("a turn that ended when it began runs")
	}
}

func TestCHT_20_WhatHooksAndTheModTellOfATurn(t *testing.T) {
	mod, m := &ModLink{Number: 2}, NewMod()
	state := func(what string, want ModState) { t.Helper(); wantState(t, m, what, want) }
	m.Hello(mod, "s1", false)
	m.Sign(session.HookCall{Event: session.EventPrompt}, 10)
	if state("a prompt", ModInTurn); m.TurnEnded(9) {
		t.Error("the end of an earlier turn ended this one")
	}
	m.Sign(session.HookCall{Event: session.EventStop}, 11)
	state("a stop hook may keep it going", ModInTurn)
	m.Sign(session.HookCall{Event: session.EventStart, Source: "compact"}, 12)
	state("a compaction within a turn", ModInTurn)
	m.Rest()
	state("a person broke it off", ModFree)
	m.Busy()
	state("the mod says that one is under way", ModInTurn)
	m.Sign(session.HookCall{Event: session.EventStart, Source: "resume"}, 13)
	state("begun anew", ModFree)
	if m.Give("c"); !m.Lost(mod) || m.Lost(mod) || m.Awaited() != "" {
		t.Error("a mod that has gone may still report")
	}
	m.UndoGive()
	state("it has gone", ModAbsent)
	m.Hello(mod, "s2", false)
	if m.Moved("s1"); mod.Moved {
		t.Error("another conversation's move counts")
	}
	m.Moved("s2")
	if state("its conversation is another one", ModAbsent); !mod.Moved {
		t.Error("it is asked again")
	}
	if got := m.Conversations("s3"); len(got) != 3 || got[0] != "s1" || got[1] != "s2" || got[2] != "s3" {
		t.Errorf("conversations %v", got)
	}
	if !m.Watch() || m.Watch() || !m.Unwatch() || !m.Watch() {
		t.Error("not watched by exactly one")
	}
}
