package mail

import (
	"fmt"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
)

// TestMSG_07_CHT_03_CHT_04_CHT_07_CHT_08_CHT_20_WhatStartsATurnNow is the verdict
// read from outside: by kind, state, policy, and what is open.
func TestMSG_07_CHT_03_CHT_04_CHT_07_CHT_08_CHT_20_WhatStartsATurnNow(t *testing.T) {
	facts := func(kind bridge.AgentKind, change ...func(*delivery.Facts)) delivery.Facts {
		f := delivery.Facts{Kind: kind, SessionID: "h1", Hooks: true}
		for _, call := range change {
			call(&f)
		}
		return f
	}
	busy, channel, waiting := func(f *delivery.Facts) { f.Busy = true }, func(f *delivery.Facts) { f.Channel = true }, func(f *delivery.Facts) { f.Waiting = true }
	plugin, mod, failed := func(f *delivery.Facts) { f.Plugin = true }, func(f *delivery.Facts) { f.Mod = true }, func(f *delivery.Facts) { f.Failed = true }
	silent, unknown := func(f *delivery.Facts) { f.Hooks = false }, func(f *delivery.Facts) { f.SessionID = "" }
	peer := bridge.Message{From: bridge.Address{Agent: bridge.Codex}, To: "*", ConversationID: "c", Body: "look"}
	owner := bridge.Message{From: bridge.OwnerAddress(), To: "web", ConversationID: "c", Body: "look"}
	slash, note, far := owner, owner, peer
	slash.Body, note.ConversationID, far.Hop = "/clear", "c:note", 6
	for _, tt := range []struct {
		name  string
		m     bridge.Message
		facts delivery.Facts
		want  Via
	}{
		{"claude, nothing waits", peer, facts(bridge.Claude), ""},
		{"claude, a wake hook waits", peer, facts(bridge.Claude, waiting), ViaWakeHook},
		{"claude, busy", peer, facts(bridge.Claude, waiting, channel, busy), ""},
		{"claude, a channel before a wake hook", peer, facts(bridge.Claude, waiting, channel), ViaChannel},
		{"claude, mod, a peer's mail", peer, facts(bridge.Claude, mod), ""},
		{"claude, mod and wake hook, a peer's mail", peer, facts(bridge.Claude, mod, waiting), ViaWakeHook},
		{"claude, mod, the owner's words", owner, facts(bridge.Claude, mod), ViaMod},
		{"claude, mod before a wake hook", owner, facts(bridge.Claude, mod, waiting), ViaMod},
		{"claude, mod, busy", owner, facts(bridge.Claude, mod, busy), ""},
		{"claude, mod, words that it refuses", slash, facts(bridge.Claude, mod), ""},
		{"claude, mod, words that it refuses, a wake hook waits", slash, facts(bridge.Claude, mod, waiting), ViaWakeHook},
		{"claude, mod, the owner's quiet note", note, facts(bridge.Claude, mod, waiting), ""},
		{"claude, over the hop limit", far, facts(bridge.Claude, waiting), ""},
		{"codex", peer, facts(bridge.Codex), ViaQueue},
		{"codex, refused last time", peer, facts(bridge.Codex, failed), ViaQueue},
		{"codex, no hook yet", peer, facts(bridge.Codex, silent), ""},
		{"codex, its thread not known", peer, facts(bridge.Codex, unknown), ""},
		{"codex, busy", peer, facts(bridge.Codex, busy), ""},
		{"opencode, plugin", peer, facts(bridge.OpenCode, plugin), ViaPlugin},
		{"opencode, its plugin has gone", peer, facts(bridge.OpenCode), ""},
		{"opencode, busy", peer, facts(bridge.OpenCode, plugin, busy), ""},
		{"antigravity", owner, facts(bridge.Antigravity, plugin, channel, waiting), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session.Session{ID: "p1", Name: "web", Wake: session.Policy{AutoWake: true, MaxHops: 6}}
			if got := WakeNow(tt.m, s, tt.facts); got != tt.want {
				t.Errorf("it is woken by %q, want %q", got, tt.want)
			}
		})
	}
	shy := &session.Session{ID: "p1", Name: "web", Wake: session.Policy{WakeOnDirect: true, MaxHops: 6}}
	direct := peer
	direct.To = "web"
	for want, m := range map[Via]bridge.Message{"": peer, ViaWakeHook: direct} {
		if got := WakeNow(m, shy, facts(bridge.Claude, waiting)); got != want {
			t.Errorf("CHT-18 auto-wake off, to %q: %q, want %q", m.To, got, want)
		}
	}
}

// TestMSG_06_WhatBecameOfAWake is the truth table of a sign: mail was given at
// 1,000 to a host that may take 100 to read it.
func TestMSG_06_WhatBecameOfAWake(t *testing.T) {
	const given = 1_000
	prompt := func(words string) session.HookCall {
		return session.HookCall{Event: session.EventPrompt, Prompt: words}
	}
	event := func(e session.Event) session.HookCall { return session.HookCall{Event: e} }
	compacted := session.HookCall{Event: session.EventStart, Source: "compact"}
	at := func(active, step, stop int64) Signs {
		return Signs{Active: active, Step: step, Stop: stop, Settle: 100}
	}
	since := func(turn int64) Signs { return Signs{Active: 950, Settle: 100, Turn: turn} } // RWM-21
	for _, tt := range []struct {
		name string
		s    Signs
		call session.HookCall
		now  int64
		want Outcome
	}{
		{"a prompt that holds it", at(1_050, 0, 0), prompt("... m1 ..."), 1_060, OutcomeShown},
		{"a person's prompt at once", at(900, 0, 0), prompt("hello"), 1_099, OutcomeOpen},
		{"a person's prompt when it had its time", at(900, 0, 0), prompt("hello"), 1_100, OutcomeDropped},
		{"the first sign ever is a prompt", at(0, 0, 0), prompt("hello"), 5_000, OutcomeOpen},
		{"a prompt after another sign", at(1_050, 0, 0), prompt("hello"), 5_000, OutcomeOpen},
		{"a prompt after a step in time to read", at(1_050, 1_100, 0), prompt("hello"), 5_000, OutcomeDropped},
		{"a prompt after a step too early", at(1_050, 1_099, 0), prompt("hello"), 5_000, OutcomeOpen},
		{"a prompt after a turn in time to read", at(1_050, 0, 1_100), prompt("hello"), 5_000, OutcomeDropped},
		{"the process begins anew", at(900, 0, 0), event(session.EventStart), 1_001, OutcomeDropped},
		{"the session ends", at(1_050, 0, 0), event(session.EventEnd), 1_001, OutcomeDropped},
		{"a compaction tells nothing", at(900, 0, 0), compacted, 5_000, OutcomeOpen},
		{"the first sign since is a step", at(1_000, 0, 0), event(session.EventTool), 1_001, OutcomeShown},
		{"a step after another sign", at(1_001, 0, 0), event(session.EventTool), 5_000, OutcomeOpen},
		{"the end of a turn with a step in time", at(1_001, 1_100, 0), event(session.EventStop), 5_000, OutcomeDropped},
		{"the end of a turn with a step too early", at(1_001, 1_099, 0), event(session.EventStop), 5_000, OutcomeOpen},
		{"the first sign since is of a turn from before", since(900), event(session.EventTool), 1_001, OutcomeOpen},
		{"a turn that began with the mail", since(1_001), event(session.EventTool), 1_001, OutcomeShown},
		{"the end of a turn from before", since(1_000), event(session.EventStop), 1_001, OutcomeOpen},
		{"a prompt that holds it in a turn from before", since(900), prompt("m1"), 1_001, OutcomeShown},
		{"a tool call of a turn from before, without an event", since(900), session.HookCall{HostEvent: "tool inbox"}, 1_001, OutcomeOpen},
		{"a tool call without an event", at(900, 0, 0), session.HookCall{HostEvent: "tool inbox"}, 1_001, OutcomeShown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.s.OutcomeOf(tt.call, "m1", given, tt.now); got != tt.want {
				t.Errorf("outcome %d, want %d", got, tt.want)
			}
		})
	}
}

// TestCHT_20_WhatBecameOfAPrompt goes through every trace.
func TestCHT_20_WhatBecameOfAPrompt(t *testing.T) {
	for bits := range 16 {
		for tries := range 4 {
			trace := ModTrace{Shown: bits&1 != 0, Entered: bits&2 != 0, Known: bits&4 != 0, Quiet: bits&8 != 0, Tries: tries}
			want := ModOpen
			switch {
			case trace.Shown:
				want = ModShown
			case trace.Entered:
				want = ModInTranscript
			case trace.Known && trace.Quiet && tries < 2:
				want = ModAgain
			case trace.Known && trace.Quiet:
				want = ModGivenUp
			}
			if got := trace.Outcome(); got != want {
				t.Errorf("%+v: %d, want %d", trace, got, want)
			}
		}
	}
}

func TestMSG_06_AnswersHoldWhatFits(t *testing.T) {
	bodies := func(sizes ...int) (list []Delivery) {
		for _, size := range sizes {
			list = append(list, Delivery{Message: bridge.Message{Body: string(make([]byte, size))}})
		}
		return list
	}
	for _, tt := range []struct {
		name string
		in   []Delivery
		want int
	}{
		{"nothing", nil, 0},
		{"exactly", bodies(4, 6), 2},
		{"one too many", bodies(4, 6, 1), 2},
		{"a first that is too long alone", bodies(11, 1), 1},
	} {
		if got := len(Fitting(tt.in, 10)); got != tt.want {
			t.Errorf("%s: %d fit, want %d", tt.name, got, tt.want)
		}
	}
}

func TestCHT_04_CHT_06_TheWayOfWhatAQueueTook(t *testing.T) {
	if via, detail := ViaOfQueue(chat.QueueAccepted, "why"); via != ViaQueue || detail != "" {
		t.Errorf("accepted: %q, %q", via, detail)
	}
	if via, detail := ViaOfQueue(chat.QueueUnclear, "why"); via != ViaQueueUnclear || detail != "unconfirmed, why" {
		t.Errorf("unclear: %q, %q", via, detail)
	}
}

func TestRWM_21_WhatATurnIsGivenInItsMidstIsWatchedAnew(t *testing.T) {
	given := map[string]int64{"before": 900, "within": 1_100}
	for _, tt := range []struct {
		event session.Event
		turn  int64
		want  string
	}{{session.EventStop, 1_000, "[within]"}, {session.EventTool, 1_000, "[]"}, {session.EventStop, 0, "[]"}, {session.EventStop, 1_101, "[]"}} {
		if got := fmt.Sprint((Signs{Turn: tt.turn}).Overtaken(session.HookCall{Event: tt.event}, given)); got != tt.want {
			t.Errorf("%s of a turn since %d: %s, want %s", tt.event, tt.turn, got, tt.want)
		}
	}
}

func TestMSG_06_EachGivenMessageIsJudgedByItself(t *testing.T) {
	signs := Signs{Active: 1_050, Step: 1_100, Settle: 100}
	given := map[string]int64{"held": 1_060, "lost": 1_000, "fresh": 1_090}
	shown, dropped := signs.Judge(session.HookCall{Event: session.EventPrompt, Prompt: "held"}, given, 1_120)
	if len(shown) != 1 || shown[0] != "held" || len(dropped) != 1 || dropped[0] != "lost" || len(given) != 1 || given["fresh"] == 0 {
		t.Errorf("shown %v, dropped %v, left %v", shown, dropped, given)
	}
}
