package delivery

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// a session of that kind, called web, that nothing else is known of.
func session(kind bridge.AgentKind, change ...func(*Facts)) Facts {
	f := Facts{Kind: kind, Name: "web", SessionID: "t"}
	for _, c := range change {
		c(&f)
	}
	return f
}

func busy(f *Facts)    { f.Busy = true }
func away(f *Facts)    { f.Away = true }
func channel(f *Facts) { f.Channel = true }
func plugin(f *Facts)  { f.Plugin = true }
func hooks(f *Facts)   { f.Hooks = true }
func server(f *Facts)  { f.Threads = true }
func mod(f *Facts)     { f.Mod = true }
func waiting(f *Facts) { f.Waiting = true }
func failed(f *Facts)  { f.Failed = true }
func unknown(f *Facts) { f.SessionID = "" }

const (
	atTheStep  = "The hooks of web hand it over at the next safe step; the running turn is not interrupted."
	inTheInbox = "It waits in the inbox until web looks there: no hook has reported from it yet."
	byAHook    = "A wake hook starts a turn of web with it, or the next turn shows it. By a wake hook claude tells its model that the text is no user input."
	later      = "No wake hook waits now: web reads it at its next turn, or when a wake hook comes first. By a wake hook claude tells its model that the text is no user input."
	enters     = "The mod of web enters it as a prompt of yours."
	entersThen = "The mod of web enters it as a prompt of yours when the turn has ended."
	pushed     = "It goes to web's channel, which starts a turn with it."
	stores     = "The plugin of web stores it for the next step; the running turn is not interrupted."
	starts     = "The plugin of web starts a turn with it."
	queueEnd   = "It goes to codex's queue; web reads it when its turn has ended."
	queueNow   = "It goes to codex's queue; web reads it at once."
	queueSlow  = "It goes to codex's queue; web reads it within 10 seconds: codex looks at its queue every 10 seconds when it runs without its background server."
	queueElse  = "It goes to codex's queue; if codex does not take it, it waits in the inbox until web looks there."
	queueAgain = "It goes to codex's queue; if that fails as it did last time, it waits as mail for the next turn."
	noThread   = "web has not told its thread yet, so it goes to its inbox."
	queueWakes = "A wake through codex's queue starts a turn of web with it, or its next turn shows it."
	lastTime   = "web reads it at its next turn; the last wake did not reach it."
	noneNow    = "web reads it at its next turn; nothing can wake it now."
	neverWoken = "It waits in the inbox; web reads it at its next turn, for an idle antigravity cannot be woken."
)

// transportRows is the table read from outside: every kind by what is open, busy
// and idle. owner is what is said of the owner's words, note of what only mail
// carries, "" for the same.
var transportRows = []struct {
	name        string
	facts       Facts
	by          chat.Transport
	owner, note string
	way         Way
	wake        Wake
	wakes       bool
}{
	{"CHT-03 claude, channel, idle", session(bridge.Claude, channel, hooks), chat.Bridge, pushed, "", ByChannel, WakeOpen, true},
	{"CHT-03 claude, channel, busy", session(bridge.Claude, channel, hooks, busy), chat.Bridge, atTheStep, "", ByChannel, WakeOpen, true},
	{"CHT-03 claude, channel before any hook", session(bridge.Claude, channel), chat.Bridge, pushed, "", ByChannel, WakeOpen, true},
	{"CHT-03 claude, a channel goes before a mod", session(bridge.Claude, channel, mod, hooks), chat.Bridge, pushed, "", ByChannel, WakeOpen, true},
	{"CHT-20 claude, mod, idle", session(bridge.Claude, mod, hooks), chat.Bridge, enters, later, ByMod, WakeOpen, false},
	{"CHT-20 claude, mod, idle, a wake hook waits", session(bridge.Claude, mod, hooks, waiting), chat.Bridge, enters, byAHook, ByMod, WakeOpen, true},
	{"CHT-20 claude, mod, busy", session(bridge.Claude, mod, hooks, busy), chat.Bridge, entersThen, atTheStep, ByMod, WakeOpen, false},
	{"CHT-20 claude, mod before any hook", session(bridge.Claude, mod), chat.Bridge, enters, inTheInbox, ByTools, WakeNone, false},
	{"CHT-03 claude, hooks, idle, a wake hook waits", session(bridge.Claude, hooks, waiting), chat.Bridge, byAHook, "", ByHooks, WakeOpen, true},
	{"CHT-03 claude, hooks, idle, none waits", session(bridge.Claude, hooks), chat.Bridge, later, "", ByHooks, WakeNone, false},
	{"CHT-03 claude, hooks, busy", session(bridge.Claude, hooks, waiting, busy), chat.Bridge, atTheStep, "", ByHooks, WakeOpen, true},
	{"CHT-03 claude, nothing reported", session(bridge.Claude), chat.Bridge, inTheInbox, "", ByTools, WakeNone, false},

	{"CHT-04 codex, idle, background server", session(bridge.Codex, hooks, server), chat.Native, queueNow, queueWakes, ByHooks, WakeOpen, true},
	{"CHT-04 codex, idle", session(bridge.Codex, hooks), chat.Native, queueSlow, queueWakes, ByHooks, WakeSlow, true},
	{"CHT-04 codex, busy", session(bridge.Codex, hooks, server, busy), chat.Native, queueEnd, atTheStep, ByHooks, WakeOpen, true},
	{"CHT-04 codex, busy without the server", session(bridge.Codex, hooks, busy), chat.Native, queueEnd, atTheStep, ByHooks, WakeSlow, true},
	{"CHT-04 codex, refused last time, idle", session(bridge.Codex, hooks, server, failed), chat.Native, queueAgain, lastTime, ByHooks, WakeFailed, true},
	{"CHT-04 codex, refused last time, busy", session(bridge.Codex, hooks, failed, busy), chat.Native, queueEnd, atTheStep, ByHooks, WakeFailed, true},
	{"CHT-04 codex, nothing reported", session(bridge.Codex, server), chat.Native, queueElse, inTheInbox, ByTools, WakeNone, false},
	{"CHT-04 codex, nothing reported, refused", session(bridge.Codex, failed), chat.Native, queueElse, inTheInbox, ByTools, WakeFailed, false},
	{"CHT-04 codex, thread not known", session(bridge.Codex, unknown, hooks), chat.Bridge, noThread, noneNow, ByHooks, WakeNone, false},

	{"CHT-07 opencode, plugin, idle", session(bridge.OpenCode, plugin, hooks), chat.Bridge, starts, "", ByPlugin, WakeOpen, true},
	{"CHT-07 opencode, plugin, busy", session(bridge.OpenCode, plugin, hooks, busy), chat.Bridge, stores, "", ByPlugin, WakeOpen, true},
	{"CHT-07 opencode, its plugin has gone, idle", session(bridge.OpenCode, hooks), chat.Bridge, noneNow, "", ByHooks, WakeNone, false},
	{"CHT-07 opencode, its plugin has gone, busy", session(bridge.OpenCode, hooks, busy), chat.Bridge, atTheStep, "", ByHooks, WakeNone, false},
	{"CHT-07 opencode, nothing reported", session(bridge.OpenCode), chat.Bridge, inTheInbox, "", ByTools, WakeNone, false},

	{"CHT-08 antigravity, idle", session(bridge.Antigravity, hooks), chat.Bridge, neverWoken, "", ByHooks, WakeNone, false},
	{"CHT-08 antigravity, busy", session(bridge.Antigravity, hooks, busy), chat.Bridge, atTheStep, "", ByHooks, WakeNone, false},
	{"CHT-08 antigravity, whatever waits", session(bridge.Antigravity, hooks, waiting, channel, plugin), chat.Bridge, neverWoken, "", ByHooks, WakeNone, false},
	{"CHT-08 antigravity, nothing reported", session(bridge.Antigravity), chat.Bridge, inTheInbox, "", ByTools, WakeNone, false},
}

func TestCHT_03_CHT_04_CHT_07_CHT_08_CHT_18_CHT_20_TransportTable(t *testing.T) {
	for _, tt := range transportRows {
		t.Run(tt.name, func(t *testing.T) {
			note := tt.note
			if note == "" {
				note = tt.owner
			}
			thread := ""
			if tt.by == chat.Native {
				thread = "t"
			}
			if got := To(tt.facts, "", "words"); got.Transport != tt.by || got.Detail != tt.owner || got.Thread != thread {
				t.Errorf("To = %+v,\nwant %s by thread %q: %q", got, tt.by, thread, tt.owner)
			}
			if got := Note(tt.facts); got != note {
				t.Errorf("Note = %q,\nwant %q", got, note)
			}
			if way, wake, detail := Mail(tt.facts); way != tt.way || wake != tt.wake || detail == "" {
				t.Errorf("Mail = %q, %q, %q; want %q, %q and a sentence", way, wake, detail, tt.way, tt.wake)
			}
			if got := CanWake(tt.facts); got != tt.wakes {
				t.Errorf("CanWake = %v", got)
			}
		})
	}
}

// Whatever is known of a session, every sentence is there and complete.
func TestCHT_02_NoSentenceIsMissingOrHasAHole(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		if len(rowOf(kind).mail) == 0 {
			t.Fatalf("%s has no row", kind)
		}
		for bits := range 1 << 10 {
			on := func(bit int) bool { return bits>>bit&1 == 1 }
			f := Facts{
				Kind: kind, Name: "web", Busy: on(0), Channel: on(1), Plugin: on(2), Hooks: on(3), Threads: on(4), Mod: on(5),
				Waiting: on(6), Failed: on(7), Problem: on(8),
			}
			if on(9) {
				f.SessionID = "t"
			}
			_, _, detail := Mail(f)
			words := WordsOf(f)
			route := To(f, "", "words")
			for what, said := range map[string]string{
				"detail": detail, "route": route.Detail, "note": Note(f), "owner": words.Owner, "woken by": words.WokenBy,
				"brief": words.Child.Brief, "limit": words.Child.Limit, "hint": words.Child.Hint, "child": To(f, "c", "words").Detail,
			} {
				if said == "" || strings.ContainsAny(said, "{}%") {
					t.Fatalf("%+v: the %s is %q", f, what, said)
				}
			}
			if (route.Transport == chat.Native) != (route.Taken != "") || (route.Transport == chat.Native) != (route.Thread != "") {
				t.Fatalf("%+v goes by %s, and once taken it is said: %q", f, route.Transport, route.Taken)
			}
		}
	}
}

func TestCHT_10_ANativeChild(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.OpenCode, bridge.Antigravity} {
		f := session(kind, hooks, plugin, waiting)
		route, words := To(f, "c", "words"), WordsOf(f).Child
		if route.Transport != "" || route.Detail != "A native child of "+string(kind)+" takes no direct input: send a note to its parent web." {
			t.Errorf("%s: %+v", kind, route)
		}
		if words.Direct || words.Brief != "only through its parent" || !strings.HasPrefix(words.Limit, "A native child of "+string(kind)+" takes no direct input. A note to web") {
			t.Errorf("%s: %+v", kind, words)
		}
		if want := "The note is mail for web. " + Note(f); words.Hint != want {
			t.Errorf("%s: the hint is %q, want %q", kind, words.Hint, want)
		}
	}
	f := session(bridge.Codex, hooks)
	route, words := To(f, "c", "words"), WordsOf(f).Child
	if route.Transport != chat.Native || route.Thread != "c" || route.Taken != "It is in the child's own queue in codex; the child reads it when its turn has ended." {
		t.Errorf("codex: %+v", route)
	}
	if !words.Direct || !strings.HasPrefix(words.Limit, "codex takes words for a child only while its background server runs both") {
		t.Errorf("codex: %+v", words)
	}
	if want := "To the child: its own queue in codex. The note is mail for web. " + Note(f); words.Hint != want {
		t.Errorf("codex: the hint is %q, want %q", words.Hint, want)
	}
}

func TestCHT_04_WhatIsSaidOnceTheQueueTookIt(t *testing.T) {
	for said, f := range map[string]Facts{
		"It is in codex's queue; web reads it when its turn has ended.": session(bridge.Codex, busy, server, hooks),
		"It is in codex's queue; web reads it at once.":                 session(bridge.Codex, server, failed),
		"It is in codex's queue; web reads it within 10 seconds: codex looks at its queue every 10 seconds when it runs without its background server.": session(bridge.Codex),
	} {
		if got := To(f, "", "words").Taken; got != said {
			t.Errorf("%+v: %q, want %q", f, got, said)
		}
	}
}

func TestCHT_05_WhatIsSaidOnceTheQueueRefused(t *testing.T) {
	for said, route := range map[string]Route{
		atTheStep:                        To(session(bridge.Codex, hooks, busy), "", "words"),
		lastTime:                         To(session(bridge.Codex, hooks, server), "", "words"),
		inTheInbox:                       To(session(bridge.Codex), "", "words"),
		"send a note to its parent web.": To(session(bridge.Codex, hooks), "c", "words"),
	} {
		if route.Refused != said {
			t.Errorf("%q, want %q", route.Refused, said)
		}
	}
}

func TestCHT_20_WhatTheModRefusesIsMail(t *testing.T) {
	for body, why := range map[string]string{
		" /clear": "Claude would run a prompt that begins with / as a command of yours. So it goes to web as mail: ",
		" \n":     "Claude takes no prompt of white space alone. So it goes to web as mail: ",
	} {
		for note, f := range map[string]Facts{atTheStep: session(bridge.Claude, mod, hooks, busy), byAHook: session(bridge.Claude, mod, hooks, waiting)} {
			if got := To(f, "", body); got.Transport != chat.Bridge || got.Detail != why+note {
				t.Errorf("%q: %+v, want %q", body, got, why+note)
			}
		}
	}
}

func TestMSG_05_WhoIsAwayHasOnlyItsMail(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		if got := To(session(kind, away), "", "words"); got.Transport != chat.Bridge || got.Detail != "Stored; web reads it when it is back." {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

func TestCHT_18_TheWakePolicyInWords(t *testing.T) {
	autoWake, direct := func(f *Facts) { f.AutoWake = true }, func(f *Facts) { f.WakeOnDirect = true }
	for _, tt := range []struct {
		facts Facts
		want  string
	}{
		{session(bridge.Codex, autoWake, direct), "any mail that may wake; auto-wake is on"},
		{session(bridge.Codex, direct), "only mail to exactly its name or id; auto-wake is off"},
		{session(bridge.Codex), "only your own words; auto-wake is off"},
		{session(bridge.Antigravity, autoWake), "none: an idle antigravity reads at its next turn"},
	} {
		if got := WordsOf(tt.facts).WokenBy; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.facts, got, tt.want)
		}
	}
}

func TestCHT_19_WhatKeepsMailFromItsBestWay(t *testing.T) {
	problem := func(f *Facts) { f.Problem = true }
	for _, tt := range []struct {
		facts Facts
		want  string
	}{
		{session(bridge.Codex, failed, problem), "Only its inbox is open."},
		{session(bridge.Codex, hooks, failed, problem), "It could not be woken."},
		{session(bridge.OpenCode, plugin, problem), "Something may not work."},
		{session(bridge.OpenCode, plugin), ""},
	} {
		if got := WordsOf(tt.facts).Obstacle; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.facts, got, tt.want)
		}
	}
}

func TestCHT_03_CHT_04_CHT_07_CHT_08_WhatWakesEachKind(t *testing.T) {
	want := map[bridge.AgentKind]bridge.Waker{bridge.Claude: bridge.HookWaker, bridge.Codex: bridge.QueueWaker, bridge.OpenCode: bridge.PluginWaker, bridge.Antigravity: bridge.NoWaker}
	for kind, waker := range want {
		if got := WakerOf(kind); got != waker {
			t.Errorf("%s is woken by %d, want %d", kind, got, waker)
		}
		if got := NeverWakes(kind); (got != "") != (waker == bridge.NoWaker) {
			t.Errorf("%s cannot be woken: %q", kind, got)
		}
	}
}
