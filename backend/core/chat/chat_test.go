package chat

import (
	"strings"
	"testing"
)

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
		{name: "accepted is queued, never delivered", result: QueueAccepted, state: Queued, transport: Native, words: "codex took it. It is in the queue."},
		{name: "refused falls back to mail", result: QueueRefused, state: Queued, transport: Bridge, fallback: true, words: "It goes another way."},
		{name: "too old falls back to mail", result: QueueUnsupported, state: Queued, transport: Bridge, fallback: true},
		{name: "unclear is unconfirmed and never a second copy", result: QueueUnclear, state: Unconfirmed, transport: Native},
		{name: "child accepted", child: "c", result: QueueAccepted, state: Queued, transport: Native, words: "codex took it. It is in the queue."},
		{name: "child refused offers the parent", child: "c", result: QueueRefused, state: NotSupported, transport: Parent, words: "It goes another way."},
		{name: "child unclear", child: "c", result: QueueUnclear, state: Unconfirmed, transport: Native},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, fallback := OutcomeOf(tt.child, "It is in the queue.", "It goes another way.", tt.result, "it exited with 1")
			if got.State != tt.state || got.Transport != tt.transport || fallback != tt.fallback {
				t.Errorf("OutcomeOf = %+v, %v; want %s by %s, fallback %v", got, fallback, tt.state, tt.transport, tt.fallback)
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

func TestCHT_20_WhatAModCannotEnterAsAPrompt(t *testing.T) {
	for body, want := range map[string]string{
		"": "white space alone", " \n\u00a0": "white space alone", "/clear": "begins with /", "\n /clear": "begins with /", "run /clear": "", "hello": "",
	} {
		if got := ModRefusal(body); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
