package delivery

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/proof"
)

// without returns a change that breaks routes since version 2.0.
func without(routes ...proof.Route) func(*Facts) {
	return func(f *Facts) {
		f.Broken = proof.Faults{}
		for _, route := range routes {
			f.Broken[route] = "2.0"
		}
	}
}

const (
	inBox     = "It waits in the inbox until web looks there: mail in a turn is broken since 2.0."
	boxOnly   = "Mail in a turn is broken since 2.0: it waits until the session calls inbox."
	boxOrWake = "Mail in a turn is broken since 2.0: it waits for a wake, or until the session calls inbox."
	atPrompt  = "Its wake is broken since 2.0: web reads it at its next prompt."
	unwoken   = "; its wake is broken since 2.0: it reads mail at its next prompt."
	viaMail   = "The way of your words is broken since 2.0, so they go to web as mail: "
)

var inTurn = without(mailRoutes...)

func TestCAN_03_MailTakesNoBrokenRoute(t *testing.T) {
	wake := without(proof.Wake)
	for _, tt := range []struct {
		name   string
		facts  Facts
		way    Way
		wake   Wake
		detail string
		note   string
		wakes  bool
	}{
		{"claude, wake", session(bridge.Claude, hooks, waiting, wake), ByHooks, WakeNone, byHooks + unwoken, atPrompt, false},
		{"claude at work, wake", session(bridge.Claude, hooks, busy, wake), ByHooks, WakeNone, byHooks + unwoken, atTheStep, false},
		{"claude with a mod, wake", session(bridge.Claude, hooks, mod, wake), ByMod, WakeNone, modWords + unwoken, atPrompt, false},
		{"claude before any hook, wake", session(bridge.Claude, wake), ByTools, WakeNone, "", inTheInbox, false},
		{"codex, wake", session(bridge.Codex, hooks, server, wake), ByHooks, WakeNone, byHooks + unwoken, atPrompt, false},
		{"codex whose last wake failed, wake", session(bridge.Codex, hooks, failed, wake), ByHooks, WakeNone, byHooks + unwoken, atPrompt, false},
		{"opencode, wake", session(bridge.OpenCode, plugin, wake), ByPlugin, WakeNone, "Its plugin hands mail over at the next step" + unwoken, atPrompt, false},
		{"opencode at work, wake", session(bridge.OpenCode, plugin, busy, wake), ByPlugin, WakeNone, "Its plugin hands mail over at the next step" + unwoken, stores, false},
		{"antigravity, wake", session(bridge.Antigravity, hooks, wake), ByHooks, WakeNone, "", neverWoken, false},

		{"claude, mail in a turn", session(bridge.Claude, hooks, inTurn), ByTools, WakeNone, boxOnly, inBox, false},
		{"claude, mail in a turn, a wake hook waits", session(bridge.Claude, hooks, waiting, inTurn), ByTools, WakeOpen, boxOrWake, inBox, true},
		{"codex, mail in a turn", session(bridge.Codex, hooks, inTurn), ByTools, WakeOpen, boxOrWake, inBox, true},
		{"opencode, mail in a turn", session(bridge.OpenCode, plugin, inTurn), ByTools, WakeOpen, boxOrWake, inBox, true},
		{"antigravity, mail in a turn", session(bridge.Antigravity, hooks, inTurn), ByTools, WakeNone, boxOnly, inBox, false},
		{
			"codex, mail in a turn and wake", session(bridge.Codex, hooks, without(append([]proof.Route{proof.Wake}, mailRoutes...)...)),
			ByTools, WakeNone, boxOnly, inBox, false,
		},
		{
			"claude, mail at a tool", session(bridge.Claude, hooks, without(proof.MailAtTool)), ByHooks, WakeNone,
			"Its hooks hand mail over at the next prompt or end of a turn" + sleepsOn + " Mail at a tool call is broken since 2.0.", later, false,
		},
		{
			"claude, two steps", session(bridge.Claude, hooks, without(proof.MailAtTool, proof.MailAtStop)), ByHooks, WakeNone,
			"Its hooks hand mail over at the next prompt" + sleepsOn + " Mail at a tool call is broken since 2.0. Mail at the end of a turn is broken since 2.0.", later, false,
		},
		{
			"codex, wake and mail at a prompt", session(bridge.Codex, hooks, without(proof.Wake, proof.MailAtPrompt)), ByHooks, WakeNone,
			"Its hooks hand mail over at the next tool call or end of a turn; its wake is broken since 2.0: it reads mail in its next turn. Mail at a prompt is broken since 2.0.",
			"Its wake is broken since 2.0: web reads it in its next turn.", false,
		},
		{
			"opencode, mail at the stop", session(bridge.OpenCode, plugin, without(proof.MailAtStop)), ByPlugin, WakeOpen,
			"Its plugin hands mail over at the next step, and starts a turn when it is idle and the wake policy allows it. Mail at the end of a turn is broken since 2.0.", starts, true,
		},
		{"a channel is another way than the wake", session(bridge.Claude, hooks, channel, wake), ByChannel, WakeOpen, "", pushed, true},
		{"the start note is no way of mail", session(bridge.Codex, hooks, server, without(proof.StartNote, proof.DelegatedJob)), ByHooks, WakeOpen, "", queueWakes, true},
	} {
		way, wake, detail := Mail(tt.facts)
		if way != tt.way || wake != tt.wake || tt.detail != "" && detail != tt.detail {
			t.Errorf("%s: Mail = %q, %q, %q;\nwant %q, %q, %q", tt.name, way, wake, detail, tt.way, tt.wake, tt.detail)
		}
		if got := Note(tt.facts); got != tt.note {
			t.Errorf("%s: Note = %q,\nwant %q", tt.name, got, tt.note)
		}
		if got := CanWake(tt.facts); got != tt.wakes {
			t.Errorf("%s: CanWake = %v", tt.name, got)
		}
	}
}

func TestCAN_03_TheOwnersWordsTakeNoBrokenRoute(t *testing.T) {
	words := without(proof.YourWords)
	for _, tt := range []struct {
		name  string
		facts Facts
		by    chat.Transport
		want  string
	}{
		{"codex", session(bridge.Codex, hooks, server, words), chat.Bridge, viaMail + queueWakes},
		{"codex at work", session(bridge.Codex, hooks, busy, words), chat.Bridge, viaMail + atTheStep},
		{"codex, wake too", session(bridge.Codex, hooks, without(proof.YourWords, proof.Wake)), chat.Bridge, viaMail + atPrompt},
		{"codex, only the wake", session(bridge.Codex, hooks, server, without(proof.Wake)), chat.Native, queueNow},
		{"claude with a mod", session(bridge.Claude, mod, hooks, words), chat.Bridge, viaMail + later},
		{"opencode has no other way", session(bridge.OpenCode, plugin, words), chat.Bridge, starts},
		{"away", session(bridge.Codex, away, words), chat.Bridge, "Stored; web reads it when it is back."},
	} {
		got := To(tt.facts, "", "words")
		if got.Transport != tt.by || got.Detail != tt.want || (got.Thread != "") != (tt.by == chat.Native) {
			t.Errorf("%s: %+v,\nwant %s: %q", tt.name, got, tt.by, tt.want)
		}
	}
}

func TestCAN_03_AChildIsReachedByNoBrokenRoute(t *testing.T) {
	f := session(bridge.Codex, hooks, without(proof.ToChild))
	const broken = "The way to sub-agents is broken since 2.0"
	if got := To(f, "c", "words"); got.Transport != "" || got.Detail != broken+": send a note to their parent web." {
		t.Errorf("%+v", got)
	}
	words := WordsOf(f).Child
	if words.Direct || words.Brief != parentOnly.brief || words.Limit != broken+". A note to web names the sub-agent and carries your words." {
		t.Errorf("%+v", words)
	}
	if got := To(session(bridge.Claude, hooks, without(proof.ToChild)), "c", "words").Detail; strings.Contains(got, "broken") {
		t.Errorf("claude never had that way: %s", got)
	}
}

func TestCAN_03_ThePageSaysWhatKeepsMailFromItsBestWay(t *testing.T) {
	for _, tt := range []struct {
		facts            Facts
		obstacle, wokeBy string
	}{
		{session(bridge.Codex, hooks, without(proof.Wake)), "Its wake is broken since 2.0.", "none: its wake is broken since 2.0"},
		{session(bridge.Codex, hooks, failed, without(proof.Wake)), "Its wake is broken since 2.0.", "none: its wake is broken since 2.0"},
		{session(bridge.Codex, hooks, inTurn), "Only its inbox is open.", "only your own words; auto-wake is off"},
		{session(bridge.Antigravity, hooks, without(proof.Wake)), "", "none: an idle antigravity reads at its next turn"},
		{session(bridge.Claude, hooks, channel, without(proof.Wake)), "", "only your own words; auto-wake is off"},
	} {
		if got := WordsOf(tt.facts); got.Obstacle != tt.obstacle || got.WokenBy != tt.wokeBy {
			t.Errorf("%+v: %q, %q", tt.facts, got.Obstacle, got.WokenBy)
		}
	}
}

// Whatever is broken, no sentence promises it, and each is complete.
func TestCAN_03_NothingIsPromisedByABrokenRoute(t *testing.T) {
	routes := []proof.Route{proof.MailAtPrompt, proof.MailAtTool, proof.MailAtStop, proof.Wake, proof.YourWords, proof.ToChild}
	for _, kind := range bridge.Kinds() {
		for bits := range 1 << 13 {
			on := func(bit int) bool { return bits>>bit&1 == 1 }
			f := Facts{
				Kind: kind, Name: "web", SessionID: "t", Broken: proof.Faults{}, Busy: on(0), Channel: on(1), Plugin: on(2), Hooks: on(3),
				Mod: on(4), Waiting: on(5), Failed: on(6),
			}
			for i, route := range routes {
				if on(7 + i) {
					f.Broken[route] = "2.0"
				}
			}
			_, wake, detail := Mail(f)
			words := WordsOf(f)
			said := []string{detail, Note(f), words.Owner, words.WokenBy, words.Child.Limit, words.Child.Hint, To(f, "c", "words").Detail}
			for _, text := range said {
				if text == "" || strings.ContainsAny(text, "{}%") || strings.Contains(text, "since .") || strings.Contains(text, "since :") {
					t.Fatalf("%+v: %q", f, text)
				}
			}
			checkPromises(t, f, wake, detail, words)
		}
	}
}

// checkPromises fails if a sentence promises what is broken.
func checkPromises(t *testing.T, f Facts, wake Wake, detail string, words Words) {
	t.Helper()
	all := detail + " " + Note(f)
	for route, promises := range map[proof.Route][]string{
		proof.MailAtPrompt: {"next prompt", "prompt or"},
		proof.MailAtTool:   {"next tool call", "tool call,"},
		proof.MailAtStop:   {"or end of a turn", "next end of a turn"},
		proof.Wake:         {"wake hook starts", "queue wakes it", "plugin of web starts", "waiting hook wakes it"},
	} {
		if !f.Broken.Has(route) || route == proof.Wake && f.Channel {
			continue
		}
		for _, promise := range promises {
			if strings.Contains(all, promise) {
				t.Fatalf("%s is broken, and %+v is told: %s", route, f, all)
			}
		}
	}
	if f.Broken.Has(proof.Wake) && !f.Channel && (wake == WakeOpen && f.Kind != bridge.Claude || CanWake(f)) {
		t.Fatalf("%+v is woken by a broken wake: %s", f, wake)
	}
	if f.Broken.Has(proof.YourWords) && To(f, "", "words").Transport == chat.Native {
		t.Fatalf("%+v: the owner's words go by a broken way", f)
	}
	if f.Broken.Has(proof.ToChild) && words.Child.Direct {
		t.Fatalf("%+v: a child is reached by a broken way", f)
	}
}
