package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
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

// The answer to session/set_mode confirms the mode, unless the agent reports another one.
func TestKND_06_TheAnswerConfirmsTheMode(t *testing.T) {
	tests := []struct {
		name, before, reported string
		fails                  bool
	}{
		{name: "the agent reports nothing", before: "default", reported: "default"},
		{name: "the agent reports the new mode", before: "default", reported: "plan"},
		{name: "the agent never reports a mode"},
		{name: "the agent reports another mode", before: "default", reported: "yolo", fails: true},
	}
	for _, tt := range tests {
		a := &agent{spec: job.Spec{ACP: job.ACPAgent{Name: "it"}}, mode: tt.reported, changed: make(chan struct{})}
		err := a.confirm("plan", tt.before)
		if (err != nil) != tt.fails || tt.fails && !strings.Contains(err.Error(), `reports the mode "yolo"`) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !tt.fails && a.mode != "plan" {
			t.Errorf("%s: the mode is %q", tt.name, a.mode)
		}
	}
}

// The modes of known adapters need no settings of the owner. An agent of another name, or
// one that does not offer the mode, is refused a job that asks.
func TestKND_06_ModesOfKnownAdapters(t *testing.T) {
	gemini := []string{"default", "autoEdit", "yolo", "plan"}
	qwen := []string{"plan", "default", "auto-edit", "auto", "yolo"}
	claude := []string{"default", "acceptEdits", "plan", "auto"}
	codex := []string{"read-only", "auto", "full-access"}
	tests := []struct {
		adapter string
		offered []string
		access  job.Access
		own     string
		want    string
		denied  bool
	}{
		{adapter: "gemini-cli", offered: gemini, access: job.AccessRead, want: "plan"},
		{adapter: "gemini-cli", offered: gemini, access: job.AccessAsk, want: "default"},
		{adapter: "gemini-cli", offered: gemini, access: job.AccessEdit, want: "autoEdit"},
		{adapter: "gemini-cli", offered: gemini, access: job.AccessEdit, own: "yolo", want: "yolo"},
		{adapter: "gemini-cli", offered: []string{"yolo"}, access: job.AccessAsk, denied: true},
		{adapter: "gemini-cli", offered: []string{"yolo"}, access: job.AccessEdit},
		{adapter: "qwen-code", offered: qwen, access: job.AccessRead, want: "plan"},
		{adapter: "qwen-code", offered: qwen, access: job.AccessAsk, want: "default"},
		{adapter: "qwen-code", offered: qwen, access: job.AccessEdit, want: "auto-edit"},
		{adapter: "@agentclientprotocol/claude-agent-acp", offered: claude, access: job.AccessRead, want: "plan"},
		{adapter: "@agentclientprotocol/claude-agent-acp", offered: claude, access: job.AccessAsk, want: "default"},
		{adapter: "@agentclientprotocol/claude-agent-acp", offered: claude, access: job.AccessEdit, want: "acceptEdits"},
		{adapter: "codex-acp", offered: codex, access: job.AccessRead, want: "read-only"},
		{adapter: "codex-acp", offered: codex, access: job.AccessAsk, denied: true},
		{adapter: "codex-acp", offered: codex, access: job.AccessEdit, want: "auto"},
		{adapter: "somebody's", offered: gemini, access: job.AccessAsk, denied: true},
		{adapter: "", offered: gemini, access: job.AccessEdit},
	}
	for _, tt := range tests {
		spec := job.Spec{Access: tt.access, ACP: job.ACPAgent{Name: "it"}}
		if tt.own != "" {
			spec.ACP.Modes = map[job.Access]string{tt.access: tt.own}
		}
		mode, err := (&agent{spec: spec, adapter: tt.adapter}).modeOf(tt.offered)
		if mode != tt.want || (bridge.CodeOf(err) == bridge.Denied) != tt.denied || (err != nil) != tt.denied {
			t.Errorf("%s with %s: %q, %v; want %q, denied: %t", tt.adapter, tt.access, mode, err, tt.want, tt.denied)
		}
	}
}

// A message of its own, such as an adapter's notice, is not joined to the answer.
func TestKND_06_MessagesAreSeparated(t *testing.T) {
	type chunk struct{ message, text string }
	tests := []struct {
		name   string
		chunks []chunk
		want   string
	}{
		{"an agent without ids", []chunk{{"", "do"}, {"", "ne"}}, "done"},
		{"one message", []chunk{{"1", "do"}, {"1", "ne"}}, "done"},
		{"two messages", []chunk{{"1", "done edit"}, {"2", "can"}, {"2", "ned"}}, "done edit\n\ncanned"},
		{"a notice without an id", []chunk{{"1", "4711"}, {"", "Warning"}}, "4711\n\nWarning"},
		{"an empty chunk says nothing", []chunk{{"1", ""}, {"2", "done"}, {"3", ""}}, "done"},
	}
	for _, tt := range tests {
		a := &agent{}
		for _, c := range tt.chunks {
			a.hear(c.message, c.text)
		}
		if got := a.words.Take(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestKND_06_ExitCodesOfAgents(t *testing.T) {
	tests := map[string]string{
		`{"exitCode":3}`: "3", `{"exit_code":0}`: "0", `{"metadata":{"exit":1}}`: "1",
		`{"content":"ran","contents":[{"type":"text","exitCode":9},{"type":"shell_exit","shellId":"0","exitCode":2}]}`: "2",
		`{"contents":[{"type":"shell_exit"}]}`: "null", `{"contents":"ran"}`: "null", `"ran"`: "null",
	}
	for raw, want := range tests {
		if got, err := json.Marshal(exit(json.RawMessage(raw))); err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
