package chat

import (
	"strings"
	"testing"

	"bridge/backend/bridge"
)

func TestCHT_03_CHT_04_CHT_07_CHT_08_CHT_10_TransportTable(t *testing.T) {
	tests := []struct {
		name      string
		target    Target
		child     string
		transport Transport
		thread    string
		words     string
	}{
		{name: "claude with a channel", target: Target{Kind: bridge.Claude, SessionID: "s", Channel: true, Hooks: true}, transport: Bridge, words: "channel"},
		{name: "claude busy by hooks", target: Target{Kind: bridge.Claude, SessionID: "s", Hooks: true, Busy: true}, transport: Bridge, words: "safe step"},
		{name: "claude idle by hooks", target: Target{Kind: bridge.Claude, SessionID: "s", Hooks: true}, transport: Bridge, words: "wake hook"},
		{name: "claude child", target: Target{Kind: bridge.Claude, Hooks: true}, child: "c", words: "parent"},
		{name: "codex idle", target: Target{Kind: bridge.Codex, SessionID: "t"}, transport: Native, thread: "t", words: "within 10 seconds"},
		{name: "codex idle with its background server", target: Target{Kind: bridge.Codex, SessionID: "t", Threads: true}, transport: Native, thread: "t", words: "at once"},
		{name: "codex busy", target: Target{Kind: bridge.Codex, SessionID: "t", Busy: true}, transport: Native, thread: "t", words: "turn has ended"},
		{name: "codex unknown thread", target: Target{Kind: bridge.Codex}, transport: Bridge, words: "has not told its thread"},
		{name: "codex child", target: Target{Kind: bridge.Codex, SessionID: "t"}, child: "c", transport: Native, thread: "c"},
		{name: "opencode busy", target: Target{Kind: bridge.OpenCode, SessionID: "s", Plugin: true, Busy: true}, transport: Bridge, words: "next step"},
		{name: "opencode idle", target: Target{Kind: bridge.OpenCode, SessionID: "s", Plugin: true}, transport: Bridge, words: "starts a turn"},
		{name: "opencode child", target: Target{Kind: bridge.OpenCode, Plugin: true}, child: "c", words: "parent"},
		{name: "antigravity busy", target: Target{Kind: bridge.Antigravity, SessionID: "s", Hooks: true, Busy: true}, transport: Bridge, words: "next turn"},
		{name: "antigravity idle is promised no wake", target: Target{Kind: bridge.Antigravity, SessionID: "s", Hooks: true}, transport: Bridge, words: "next turn"},
		{name: "antigravity child", target: Target{Kind: bridge.Antigravity}, child: "c", words: "parent"},
		{name: "away", target: Target{Kind: bridge.Codex, SessionID: "t", Away: true}, transport: Bridge, words: "back"},
		{name: "nothing reported yet", target: Target{Kind: bridge.Claude}, transport: Bridge, words: "inbox"},
		{name: "busy without hooks", target: Target{Kind: bridge.Claude, Busy: true}, transport: Bridge, words: "inbox until"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := RouteTo(tt.target, tt.child, "words")
			if got.Transport != tt.transport || got.Thread != tt.thread || !strings.Contains(got.Detail, tt.words) {
				t.Errorf("RouteTo = %+v; want transport %q, thread %q, detail with %q", got, tt.transport, tt.thread, tt.words)
			}
		})
	}
}

func TestCHT_05_CHT_06_CHT_19_QueueOutcomes(t *testing.T) {
	tests := []struct {
		name      string
		child     string
		result    QueueResult
		state     State
		transport Transport
		fallback  bool
		words     string
	}{
		{name: "accepted is queued, never delivered", result: QueueAccepted, state: Queued, transport: Native, words: "codex's queue; web"},
		{name: "refused falls back to mail", result: QueueRefused, state: Queued, transport: Bridge, fallback: true},
		{name: "too old falls back to mail", result: QueueUnsupported, state: Queued, transport: Bridge, fallback: true},
		{name: "unclear is unconfirmed and never a second copy", result: QueueUnclear, state: Unconfirmed, transport: Native},
		{name: "child accepted", child: "c", result: QueueAccepted, state: Queued, transport: Native, words: "the child's own queue"},
		{name: "child refused offers the parent", child: "c", result: QueueRefused, state: NotSupported, transport: Parent},
		{name: "child unclear", child: "c", result: QueueUnclear, state: Unconfirmed, transport: Native},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, fallback := Settle(Target{Kind: bridge.Codex, Name: "web"}, tt.child, tt.result, "it exited with 1")
			if got.State != tt.state || got.Transport != tt.transport || fallback != tt.fallback {
				t.Errorf("Settle = %+v, %v; want %s by %s, fallback %v", got, fallback, tt.state, tt.transport, tt.fallback)
			}
			if tt.result != QueueAccepted && !strings.Contains(got.Detail, "it exited with 1") {
				t.Errorf("the detail does not say why: %q", got.Detail)
			}
			if !strings.Contains(got.Detail, tt.words) {
				t.Errorf("the detail %q does not say %q", got.Detail, tt.words)
			}
		})
	}
}

func TestCHT_11_TheNoteNamesTheChild(t *testing.T) {
	note := ParentNote("c-1", "explore", "look at $(x)")
	for _, want := range []string{"c-1", "explore", "look at $(x)"} {
		if !strings.Contains(note, want) {
			t.Errorf("the note %q lacks %q", note, want)
		}
	}
}

func TestCHT_11_AMessageSaysForWhichChildItIs(t *testing.T) {
	for _, tt := range []struct{ to, child string }{
		{ToChild("web", "c-1"), "c-1"},
		{ToChild("web", "c(1)"), "c(1)"},
		{"web", ""},
		{"", ""},
	} {
		if got := ChildOf(tt.to); got != tt.child {
			t.Errorf("ChildOf(%q) = %q, want %q", tt.to, got, tt.child)
		}
	}
}
