package hooks

import (
	"encoding/json"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// claude is kind A. Text reaches the model as additional context, which at a stop
// continues the turn.
type claude struct{}

func (claude) Kind() bridge.AgentKind { return bridge.Claude }

// commandEvents are the hook events that Bridge registers with claude and codex.
var commandEvents = map[string]session.Event{
	"SessionStart":     session.EventStart,
	"UserPromptSubmit": session.EventPrompt,
	"PreToolUse":       session.EventPreTool,
	"PostToolUse":      session.EventTool,
	PermissionEvent:    session.EventAsk,
	FailedEvent:        session.EventToolFailed,
	BatchEvent:         session.EventToolBatch,
	InterruptEvent:     session.EventInterrupt,
	"Stop":             session.EventStop,
	"SubagentStart":    session.EventChildStart,
	"SubagentStop":     session.EventChildStop,
	"SessionEnd":       session.EventEnd,
}

// IsStart reports whether a hook command's event is the start of a session.
func IsStart(event string) bool { return commandEvents[event] == session.EventStart }

func (claude) TaskOf(event string) Task {
	switch {
	case event == WakeEvent:
		return WaitForMail
	case event == WakeStandbyEvent:
		return StandByForMail
	case event == PermissionEvent:
		return HoldPrompt
	case IsOfPromptsOnly(event):
		return ReportOutcome
	default:
		return Report
	}
}

func (claude) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	return parseCommandHook(bridge.Claude, event, stdin)
}

// FormatHook adds context at a stop too, which continues the turn: the reason of a
// "block" reaches the model twice and is shown as a problem.
func (claude) FormatHook(call session.HookCall, text string) []byte {
	if silent(call, text) {
		return nothing()
	}
	switch call.Event {
	case session.EventStart, session.EventPrompt, session.EventTool, session.EventStop:
		return addContext(call, text)
	default:
		return nothing()
	}
}

// commandHook is the input that claude and codex share.
type commandHook struct {
	SessionID Text `json:"session_id"`
	AgentID   Text `json:"agent_id"` // inside a native child
	AgentType Text `json:"agent_type"`
	Cwd       Text `json:"cwd"`
	Source    Text `json:"source"`
	Prompt    Text `json:"prompt"`
	ToolUseID Text `json:"tool_use_id"`
	PromptID  Text `json:"prompt_id"`

	ToolName  Text            `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`

	ToolCalls []batchCall `json:"tool_calls"`
}

// batchCall is one of the calls in a batch.
type batchCall struct {
	ToolName     Text            `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response"`
}

// maxBatch limits the reported calls of a batch.
const maxBatch = 100

// result returns the model's input from the call.
func (c batchCall) result() session.ToolResult {
	result := session.ToolResult{Tool: claudeCall(string(c.ToolName), c.ToolInput)}
	var said string
	if json.Unmarshal(c.ToolResponse, &said) == nil {
		result.Said = session.TextKey(said)
	}
	return result
}

func parseCommandHook(kind bridge.AgentKind, host string, stdin []byte) (session.HookCall, error) {
	event, err := eventOf(kind, commandEvents, host)
	if err != nil {
		return session.HookCall{}, err
	}
	var in commandHook
	if err := decodeHook(stdin, &in); err != nil {
		return session.HookCall{}, err
	}
	call := session.HookCall{
		Kind:       kind,
		Event:      event,
		HostEvent:  host,
		SessionID:  string(in.SessionID),
		ChildID:    string(in.AgentID),
		ChildTitle: Shorten(string(in.AgentType), bridge.MaxNameChars),
		Cwd:        Shorten(string(in.Cwd), bridge.MaxPathChars),
		Source:     Shorten(string(in.Source), bridge.MaxNameChars),
		Prompt:     Shorten(string(in.Prompt), maxPromptChars),
		ToolUseID:  Shorten(string(in.ToolUseID), bridge.MaxIDChars),
		PromptID:   Shorten(string(in.PromptID), bridge.MaxIDChars),
	}
	switch event {
	case session.EventTool, session.EventAsk, session.EventToolFailed:
		call.Tool = claudeCall(string(in.ToolName), in.ToolInput)
		call.Works = event == session.EventTool && isWork(string(in.ToolName), "mcp__bridge__")
	case session.EventToolBatch:
		for _, toolCall := range in.ToolCalls[:min(len(in.ToolCalls), maxBatch)] {
			call.Results = append(call.Results, toolCall.result())
		}
	default:
	}
	return call, checkIdentity(call)
}

// isWork reports whether a tool is known and not one of Bridge's, whose names begin with
// prefix.
func isWork(tool, prefix string) bool { return tool != "" && !strings.HasPrefix(tool, prefix) }

// addContext returns the answer of claude and codex that gives the model additional
// context.
func addContext(call session.HookCall, text string) []byte {
	return Encode(map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName":     call.HostEvent,
		"additionalContext": text,
	}})
}

// The events under which claude's wake hooks call `bridge hook claude`. They start at a
// stop, wait in the background of the idle session and start a turn when mail may wake
// it. The standby works if the first one's wake failed.
const (
	WakeEvent        = "Wake"
	WakeStandbyEvent = "WakeStandby"
)

// ClaudeMod is the name of Bridge's mod for claude and of its folder in claude's
// skills. A transcript has it as the sender of the mod's prompts.
const ClaudeMod = "bridge"
