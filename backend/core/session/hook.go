package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"

	"bridge/backend/core/bridge"
)

// Event is a report of a host through a hook or plugin. The traits of each kind name the
// host's own events.
type Event = bridge.HookEvent

// The events, as [bridge.HookEvent] has them.
const (
	EventStart      = bridge.EventStart
	EventPrompt     = bridge.EventPrompt
	EventPreTool    = bridge.EventPreTool
	EventTool       = bridge.EventTool
	EventStop       = bridge.EventStop
	EventIdle       = bridge.EventIdle
	EventEnd        = bridge.EventEnd
	EventChildStart = bridge.EventChildStart
	EventChildStop  = bridge.EventChildStop
	EventAsk        = bridge.EventAsk
	EventInterrupt  = bridge.EventInterrupt
	EventToolFailed = bridge.EventToolFailed
	EventToolBatch  = bridge.EventToolBatch
)

// HookCall is one hook or plugin call, as decoded by an agent's adapter.
type HookCall struct {
	Kind      bridge.AgentKind `json:"kind"`
	Event     Event            `json:"event"`
	HostEvent string           `json:"hostEvent"` // the host's own name, for evidence
	SessionID string           `json:"sessionId"` // host session id of the main session
	// ChildID is set if the call comes from a native child: it must never receive the
	// main session's mail.
	ChildID    string `json:"childId,omitempty"`
	ChildTitle string `json:"childTitle,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	// CLIDataDir is the folder of the CLI's own store, according to the environment of
	// the hook (host.CLIDataDir).
	CLIDataDir string `json:"store,omitempty"`
	Source     string `json:"source,omitempty"` // session-start: startup, resume, clear
	Prompt     string `json:"prompt,omitempty"`
	ToolUseID  string `json:"toolUseId,omitempty"`
	// PromptID is the host's id of the prompt that the current turn began with. A
	// prompt typed during a turn has the id of that turn, and its own turn another id.
	PromptID string `json:"promptId,omitempty"`
	// Tool identifies the tool call of the event by CallKey, or is "" if the host
	// reports too little.
	Tool string `json:"tool,omitempty"`
	// Works reports a call of a tool that is not Bridge's own (QUI-02).
	Works bool `json:"works,omitempty"`
	// Results are the results of a batch.
	Results []ToolResult `json:"results,omitempty"`
	// Ancestors are the process ids above the hook, nearest first. One of them is the
	// agent whose MCP server belongs to the same session.
	Ancestors []int `json:"ancestors,omitempty"`
}

// ToolResult is the model's input from one call of a batch.
type ToolResult struct {
	Tool string `json:"tool"` // by CallKey
	Said string `json:"said"` // by TextKey, "" if it is no text
}

// TextKey returns a key that identifies a text.
func TextKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// IsOfPromptsOnly reports whether the call is only about permission prompts.
func (c HookCall) IsOfPromptsOnly() bool {
	return c.Event == EventToolFailed || c.Event == EventToolBatch
}

// CallKey returns a key of a tool call from its tool and exact input: a host asks for
// permission before it assigns an id. It returns "" without a tool.
func CallKey(tool string, input json.RawMessage) string {
	if tool == "" {
		return ""
	}
	var members any
	if json.Unmarshal(input, &members) != nil {
		members = string(input)
	}
	plain, err := json.Marshal([]any{tool, members}) // members in one order
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:16])
}

// AcceptsMail reports whether the answer to the call may contain mail: at a safe step, at
// a prompt or at the end of a turn of the main session.
func (c HookCall) AcceptsMail() bool {
	if c.ChildID != "" {
		return false
	}
	switch c.Event {
	case EventPrompt, EventTool, EventStop, EventIdle:
		return true
	default:
		return false
	}
}

// Check refuses a call without a valid kind, or with an invalid session id.
func (c HookCall) Check() error {
	if _, err := bridge.ParseKind(string(c.Kind)); err != nil {
		return err
	}
	if c.SessionID == "" {
		return nil
	}
	return bridge.CheckID("the host session id", c.SessionID)
}

// GoesOn reports whether the call proves that its host continued with its earlier
// input. The start or end of a session proves nothing, unless it starts again in the
// same process.
func (c HookCall) GoesOn() bool {
	switch c.Event {
	case EventStart:
		return c.Source == "compact" || c.Source == "clear"
	case EventEnd, EventInterrupt:
		return false
	default:
		return true
	}
}

// Relocate moves s to the folder of its start, and reports whether that is a new one
// (DEC-13). Only a start counts: later calls, and a start after a compaction, have the
// current folder of the session's shell.
func (s *Session) Relocate(call HookCall) bool {
	if call.Event != EventStart || call.ChildID != "" || call.Source == "compact" {
		return false
	}
	if !filepath.IsAbs(call.Cwd) || call.Cwd == s.Cwd {
		return false
	}
	s.Cwd = call.Cwd
	return true
}

// HookReply is the broker's answer to a hook.
type HookReply struct {
	// Text is the text for the model, or "". At a stop it is the reason to continue; at
	// an idle event it starts a turn.
	Text  string `json:"text,omitempty"`
	Lease *Lease `json:"loan,omitempty"`
	// Unknown reports that the call's own data matched no session: the processes above
	// the hook may match (HookCall.Ancestors).
	Unknown bool `json:"unknown,omitempty"`
	// Busy is the session's state after the call, according to the broker.
	Busy bool `json:"busy,omitempty"`
}

// Lease is mail that the broker handed out and awaits an acknowledgement for. If it is
// acknowledged, it counts as handed or consumed; otherwise it is offered again.
type Lease struct {
	ID        string   `json:"id"`
	Recipient string   `json:"recipient"` // peer id
	Messages  []string `json:"messages"`  // message ids
	// Process is the receiving process of the host, or "" if unknown.
	Process string `json:"process,omitempty"`
}
