package session

import (
	"testing"

	"bridge/backend/bridge"
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
