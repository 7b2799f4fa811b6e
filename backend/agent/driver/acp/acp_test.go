package acp

import (
	"testing"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
)

// What nobody is asked about: a job that reads asks nothing, one that edits only what
// its floor does not hold, and no name of a command makes it a tool of ours.
func TestJOB_13_WhatIsDecidedWithoutAQuestion(t *testing.T) {
	const allow, refuse, ask = "allow", "refuse", "ask"
	tests := []struct {
		access      job.Access
		floor       job.Floor
		kind, title string
		want        string
	}{
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "read", want: allow},
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "execute", want: allow},
		{access: job.AccessRead, floor: job.FloorNone, kind: "execute", want: refuse},
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "edit", want: refuse},
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "fetch", want: refuse},
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "switch_mode", want: refuse},
		{access: job.AccessRead, floor: job.FloorSandbox, kind: "other", title: "bridge_send", want: allow},
		{access: job.AccessRead, floor: job.FloorNone, kind: "execute", title: "bridge_send", want: refuse},
		{access: job.AccessAsk, floor: job.FloorNone, kind: "read", want: ask},
		{access: job.AccessAsk, floor: job.FloorNone, kind: "execute", title: "mcp__bridge__send", want: ask},
		{access: job.AccessAsk, floor: job.FloorNone, kind: "other", title: "mcp__bridge__send", want: allow},
		{access: job.AccessAsk, floor: job.FloorNone, kind: "other", title: "bridge_send; rm", want: ask},
		{access: job.AccessEdit, floor: job.FloorSandbox, kind: "execute", want: allow},
		{access: job.AccessEdit, floor: job.FloorSandbox, kind: "edit", want: allow},
		{access: job.AccessEdit, floor: job.FloorSandbox, kind: "fetch", want: ask},
		{access: job.AccessEdit, floor: job.FloorNone, kind: "edit", want: ask},
		{access: job.AccessEdit, floor: job.FloorNone, kind: "read", want: allow},
	}
	for _, tt := range tests {
		a := &agent{spec: job.Spec{Access: tt.access, Bridge: job.MCPServer{Tools: []string{"send"}}}, floor: tt.floor}
		got := ask
		if allowed, decided := a.rule(step{kind: tt.kind, title: tt.title}); decided {
			got = map[bool]string{true: allow, false: refuse}[allowed]
		}
		if got != tt.want {
			t.Errorf("%s on %s: %s %q: %s, want %s", tt.access, tt.floor, tt.kind, tt.title, got, tt.want)
		}
	}
}

// Agents pass on what a provider says in their own ways.
func TestJOB_15_WhyAnErrorOfAnACPAgentCame(t *testing.T) {
	tests := map[string]struct {
		failed run.Refusal
		want   job.EndReason
	}{
		"to be logged in":      {run.Refusal{Code: authRequired, Message: "Authentication required"}, job.EndAuth},
		"a status in the data": {run.Refusal{Code: -32603, Message: "Internal error", Data: []byte(`{"statusCode":401}`)}, job.EndAuth},
		"a status in words":    {run.Refusal{Code: -32603, Message: "API error: status 503"}, job.EndProvider},
		"a used up account":    {run.Refusal{Message: "usage limit reached", Data: []byte(`{"statusCode":429}`)}, job.EndLimit},
		"a crowd":              {run.Refusal{Message: "Too Many Requests"}, job.EndOverload},
		"a long conversation":  {run.Refusal{Data: []byte(`{"details":"Prompt is too long: 200500 tokens"}`)}, job.EndContext},
		"a number of no sense": {run.Refusal{Message: "line 500 of the file"}, job.EndFailed},
		"nobody there":         {run.Refusal{Message: "connect ECONNREFUSED 127.0.0.1:1"}, job.EndNetwork},
	}
	for name, tt := range tests {
		if got, _ := why(tt.failed); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Some agents call it cancelled when they are stopped or refused, some end without a
// word; what was done to the turn tells what that means.
func TestJOB_06_WhatAStoppedACPTurnEndsWith(t *testing.T) {
	tests := []struct {
		name                  string
		said                  job.EndReason
		stopped, left, denied bool
		want                  job.EndReason
	}{
		{name: "nothing was done to it, and it said nothing", said: job.EndEmpty, want: job.EndEmpty},
		{name: "stopped, and it says so", said: job.EndInterrupted, stopped: true, want: job.EndInterrupted},
		{name: "stopped, and it ends without a word", said: job.EndEmpty, stopped: true, want: job.EndInterrupted},
		{name: "stopped after a refusal, without a word", said: job.EndEmpty, stopped: true, denied: true, want: job.EndInterrupted},
		{name: "stopped after a refusal, and it says so", said: job.EndInterrupted, stopped: true, denied: true, want: job.EndInterrupted},
		{name: "stopped too late", said: job.EndAnswer, stopped: true, want: job.EndAnswer},
		{name: "stopped when the provider failed", said: job.EndProvider, stopped: true, want: job.EndProvider},
		{name: "refused, and it ends without a word", said: job.EndEmpty, denied: true, want: job.EndDenied},
		{name: "refused, and it calls that cancelled", said: job.EndInterrupted, denied: true, want: job.EndDenied},
		{name: "refused, and it answers", said: job.EndAnswer, denied: true, want: job.EndAnswer},
		{name: "it left its mode and was stopped", said: job.EndInterrupted, stopped: true, left: true, want: job.EndDenied},
		{name: "it left its mode and answers", said: job.EndAnswer, stopped: true, left: true, want: job.EndDenied},
	}
	for _, tt := range tests {
		end := told(job.TurnEnded{Why: tt.said, Message: "its words"}, tt.stopped, tt.left, tt.denied)
		// A denial says what happened; any other end keeps the agent's words.
		if end.Why != tt.want || (end.Message == "its words") != (tt.want != job.EndDenied) {
			t.Errorf("%s: %+v, want %s", tt.name, end, tt.want)
		}
	}
}
