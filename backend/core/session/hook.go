package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"

	"bridge/backend/core/bridge"
)

// Event is what a host tells us through a hook or plugin, in one vocabulary for
// all kinds.
type Event string

// The events. Each is a sign of activity of the session that it names.
const (
	EventStart      Event = "session-start"
	EventPrompt     Event = "prompt"      // the user's or the host's next prompt
	EventPreTool    Event = "pre-tool"    // before a tool call
	EventTool       Event = "tool"        // after a tool call: a safe step
	EventStop       Event = "stop"        // the turn is about to end
	EventIdle       Event = "idle"        // the turn has ended (plugin only)
	EventEnd        Event = "session-end" // the session closes
	EventChildStart Event = "child-start" // a native child started
	EventChildStop  Event = "child-stop"
	EventAsk        Event = "ask"       // a call waits for permission
	EventInterrupt  Event = "interrupt" // the user broke the turn off

	// What is told only of calls that asked for permission, and may come late: it says
	// nothing of what the session does meanwhile.
	EventToolFailed Event = "tool-failed" // a call ran, and failed
	EventToolBatch  Event = "tool-batch"  // the calls of one answer of the model are over
)

// EndsTurn reports whether mail that comes with the event's answer starts or
// continues a turn.
func (e Event) EndsTurn() bool { return e == EventStop || e == EventIdle }

// BusyAfter reports whether a session is at work after the event.
func (e Event) BusyAfter(busy bool) bool {
	switch e {
	case EventPrompt, EventTool, EventPreTool, EventAsk:
		return true
	case EventStop, EventIdle, EventStart, EventEnd, EventInterrupt:
		return false
	default: // a child's coming and going says nothing of its parent
		return busy
	}
}

// HookCall is one hook or plugin call, as an agent's adapter reads it.
type HookCall struct {
	Kind      bridge.AgentKind `json:"kind"`
	Event     Event            `json:"event"`
	HostEvent string           `json:"hostEvent"` // the host's own name, for evidence
	SessionID string           `json:"sessionId"` // host session id of the main session
	// ChildID is set when the call comes from inside a native child: it must
	// never take the main session's mail.
	ChildID    string `json:"childId,omitempty"`
	ChildTitle string `json:"childTitle,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	// CLIDataDir is the folder of the CLI's own store, as the environment that the
	// CLI gave to the hook tells (host.CLIDataDir).
	CLIDataDir string `json:"store,omitempty"`
	Source     string `json:"source,omitempty"` // session-start: startup, resume, clear
	Prompt     string `json:"prompt,omitempty"`
	ToolUseID  string `json:"toolUseId,omitempty"`
	// PromptID is the host's id of the prompt that the turn under way began with. A prompt
	// that is typed in a turn comes with the id of that turn, and its own turn with another.
	PromptID string `json:"promptId,omitempty"`
	// Tool names the tool call that the event is about, by CallKey; "" where the host
	// says too little.
	Tool string `json:"tool,omitempty"`
	// Results are those of a batch.
	Results []ToolResult `json:"results,omitempty"`
	// Ancestors are the process ids above the hook, nearest first: one of them
	// is the agent whose MCP server belongs to the same session.
	Ancestors []int `json:"ancestors,omitempty"`
}

// ToolResult is what the model reads of one call of a batch.
type ToolResult struct {
	Tool string `json:"tool"` // by CallKey
	Said string `json:"said"` // by TextKey, "" where it is no text
}

// TextKey names a text, so that it can be known again.
func TextKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// IsOfPromptsOnly reports whether the call tells of permission prompts and of nothing
// else.
func (c HookCall) IsOfPromptsOnly() bool {
	return c.Event == EventToolFailed || c.Event == EventToolBatch
}

// CallKey names a tool call by its tool and its exact input: a host asks for permission
// without the id that it gives the call afterwards. "" without a tool.
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

// TakesMail reports whether mail may be handed to the host in answer to the
// call: at a safe step, at a prompt or at the end of a turn of the main session.
func (c HookCall) TakesMail() bool {
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

// Check refuses a call that names no kind, or a session by what is no id.
func (c HookCall) Check() error {
	if _, err := bridge.ParseKind(string(c.Kind)); err != nil {
		return err
	}
	if c.SessionID == "" {
		return nil
	}
	return bridge.CheckID("the host session id", c.SessionID)
}

// GoesOn reports whether the call is evidence that its host went on with what it
// was given before. A session that starts or ends tells nothing of it, unless it
// starts again in the same process.
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

// Relocate moves s to the folder that it starts in, and reports whether that is
// another one (DEC-13). Only a start tells: later calls name wherever the
// session's shell happens to be, and so does the start after a compaction.
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
	// Text is what the model shall read, "" for nothing. At a stop it is the
	// reason to go on; at an idle event it starts a turn.
	Text  string `json:"text,omitempty"`
	Lease *Lease `json:"loan,omitempty"`
	// Unknown says that no session was found by the call's own words: the
	// processes above the hook may tell (HookCall.Ancestors).
	Unknown bool `json:"unknown,omitempty"`
	// Busy is the session's state as the broker knows it after the call.
	Busy bool `json:"busy,omitempty"`
}

// Lease is mail that the broker gave out and waits to hear about: confirmed, it
// counts as handed or consumed; never confirmed, it is offered again.
type Lease struct {
	ID        string   `json:"id"`
	Recipient string   `json:"recipient"` // peer id
	Messages  []string `json:"messages"`  // message ids
	// Process is the process of the host that it is for, "" where that is not known.
	Process string `json:"process,omitempty"`
}
