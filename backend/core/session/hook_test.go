package session

import (
	"encoding/json"
	"testing"

	"bridge/backend/core/bridge"
)

func TestMSG_06_WhatAHookCallTells(t *testing.T) {
	for _, tt := range []struct {
		call                         HookCall
		goesOn, endsTurn             bool
		busyWhenIdle, idleWhenAtWork bool
	}{
		{call: HookCall{Event: EventStart, Source: "startup"}, idleWhenAtWork: true},
		{call: HookCall{Event: EventStart, Source: "resume"}, idleWhenAtWork: true},
		{call: HookCall{Event: EventStart, Source: "compact"}, goesOn: true, idleWhenAtWork: true},
		{call: HookCall{Event: EventStart, Source: "clear"}, goesOn: true, idleWhenAtWork: true},
		{call: HookCall{Event: EventEnd}, idleWhenAtWork: true},
		{call: HookCall{Event: EventPrompt}, goesOn: true, busyWhenIdle: true},
		{call: HookCall{Event: EventPreTool}, goesOn: true, busyWhenIdle: true},
		{call: HookCall{Event: EventTool}, goesOn: true, busyWhenIdle: true},
		{call: HookCall{Event: EventStop}, goesOn: true, endsTurn: true, idleWhenAtWork: true},
		{call: HookCall{Event: EventIdle}, goesOn: true, endsTurn: true, idleWhenAtWork: true},
		{call: HookCall{Event: EventChildStart}, goesOn: true},
		{call: HookCall{Event: EventChildStop}, goesOn: true},
	} {
		if got := tt.call.GoesOn(); got != tt.goesOn {
			t.Errorf("%+v goes on: %t", tt.call, got)
		}
		if got := tt.call.Event.EndsTurn(); got != tt.endsTurn {
			t.Errorf("%s ends a turn: %t", tt.call.Event, got)
		}
		if got := tt.call.Event.BusyAfter(false); got != tt.busyWhenIdle {
			t.Errorf("an idle session is busy after %s: %t", tt.call.Event, got)
		}
		if got := !tt.call.Event.BusyAfter(true); got != tt.idleWhenAtWork {
			t.Errorf("a busy session is idle after %s: %t", tt.call.Event, got)
		}
	}
}

func TestDEC_13_OnlyAStartMovesASession(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	start := HookCall{Event: EventStart, Source: "resume", Cwd: there}
	for name, tt := range map[string]struct {
		change func(*HookCall)
		want   string
	}{
		"a start":               {func(*HookCall) {}, there},
		"of a child":            {func(c *HookCall) { c.ChildID = "c" }, here},
		"after a compaction":    {func(c *HookCall) { c.Source = "compact" }, here},
		"a tool call":           {func(c *HookCall) { c.Event = EventTool }, here},
		"to no absolute folder": {func(c *HookCall) { c.Cwd = "b" }, here},
	} {
		s, call := &Session{Cwd: here}, start
		tt.change(&call)
		if moved := s.Relocate(call); s.Cwd != tt.want || moved != (tt.want != here) {
			t.Errorf("%s: in %q, moved %t", name, s.Cwd, moved)
		}
	}
	if (&Session{Cwd: there}).Relocate(start) {
		t.Error("a start in the same folder counts as a move")
	}
}

func TestACallNamesAKindAndAnID(t *testing.T) {
	for _, tt := range []struct {
		call HookCall
		want bridge.Code
	}{
		{HookCall{Kind: bridge.Claude, SessionID: "s1"}, ""},
		{HookCall{Kind: bridge.Claude}, ""},
		{HookCall{Kind: "cursor"}, bridge.Invalid},
		{HookCall{Kind: bridge.Claude, SessionID: "a\nb"}, bridge.Invalid},
	} {
		if err := tt.call.Check(); err != nil != (tt.want != "") || err != nil && bridge.CodeOf(err) != tt.want {
			t.Errorf("%+v: %v, want %q", tt.call, err, tt.want)
		}
	}
}

func TestNED_02_SomeCallsTellOfPromptsAlone(t *testing.T) {
	for event, want := range map[Event]bool{EventToolFailed: true, EventToolBatch: true, EventTool: false, EventPreTool: false, EventPrompt: false, "": false} {
		if got := (HookCall{Event: event}).IsOfPromptsOnly(); got != want {
			t.Errorf("%q tells of prompts alone: %t", event, got)
		}
	}
}

func TestNED_02_ACallIsNamedByItsToolAndItsInput(t *testing.T) {
	key := func(tool, input string) string { return CallKey(tool, json.RawMessage(input)) }
	same := key("Bash", `{"command":"make","timeout":5}`)
	for _, tt := range []struct {
		name, tool, input string
		same              bool
	}{
		{"the same", "Bash", `{"command":"make","timeout":5}`, true},
		{"members in another order, with spaces", "Bash", `{ "timeout": 5, "command": "make" }`, true},
		{"another tool", "Edit", `{"command":"make","timeout":5}`, false},
		{"another input", "Bash", `{"command":"make","timeout":6}`, false},
		{"input that is no JSON", "Bash", `{"command":"make"`, false},
		{"no input", "Bash", "", false},
	} {
		got := key(tt.tool, tt.input)
		if (got == same) != tt.same || len(got) != 32 || got != key(tt.tool, tt.input) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if a, b := key("Bash", "{a"), key("Bash", "{b"); a == b {
		t.Error("two inputs that are no JSON have one name")
	}
	if got := key("", `{"command":"make"}`); got != "" {
		t.Errorf("without a tool: %q", got)
	}
	if a, b := TextKey("a"), TextKey("b"); a == b || len(a) != 32 || a != TextKey("a") {
		t.Errorf("texts are named %q and %q", a, b)
	}
}
