package agent

import (
	"bridge/backend/bridge"
	"bridge/backend/session"
)

// claude is kind A. Its hooks are commands in settings.json; text reaches the
// model as additional context at a step and as the reason to go on at a stop.
type claude struct{}

func (claude) Kind() bridge.AgentKind { return bridge.Claude }

// claudeEvents are the hook events that Bridge registers.
var claudeEvents = map[string]session.Event{
	"SessionStart":     session.EventStart,
	"UserPromptSubmit": session.EventPrompt,
	"PreToolUse":       session.EventPreTool,
	"PostToolUse":      session.EventTool,
	"Stop":             session.EventStop,
	"SubagentStart":    session.EventChildStart,
	"SubagentStop":     session.EventChildStop,
	"SessionEnd":       session.EventEnd,
}

func (claude) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	return parseCommandHook(bridge.Claude, claudeEvents, event, stdin)
}

func (claude) FormatHook(call session.HookCall, text string) []byte {
	return formatCommandHook(call, text)
}

// ClaudeToolUse returns the tool use id of an MCP tools/call from claude. Its
// _meta names no agent: the PreToolUse hook with the same id does.
func ClaudeToolUse(meta map[string]any) (toolUseID string, ok bool) {
	toolUseID, _ = meta["claudecode/toolUseId"].(string)
	return toolUseID, bridge.CheckID("the tool use id", toolUseID) == nil
}

// commandHook is the input that claude and codex share.
type commandHook struct {
	SessionID      text  `json:"session_id"`
	AgentID        text  `json:"agent_id"` // inside a native child
	AgentType      text  `json:"agent_type"`
	Cwd            text  `json:"cwd"`
	Source         text  `json:"source"`
	Prompt         text  `json:"prompt"`
	StopHookActive truth `json:"stop_hook_active"`
	ToolName       text  `json:"tool_name"`
	ToolUseID      text  `json:"tool_use_id"`
}

func parseCommandHook(kind bridge.AgentKind, events map[string]session.Event, host string, stdin []byte) (session.HookCall, error) {
	event, err := eventOf(kind, events, host)
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
		ChildTitle: shorten(string(in.AgentType), bridge.MaxNameChars),
		Cwd:        shorten(string(in.Cwd), bridge.MaxPathChars),
		Source:     shorten(string(in.Source), bridge.MaxNameChars),
		Prompt:     shorten(string(in.Prompt), maxPromptChars),
		StopActive: bool(in.StopHookActive),
		Tool:       shorten(string(in.ToolName), bridge.MaxIDChars),
		ToolUseID:  shorten(string(in.ToolUseID), bridge.MaxIDChars),
	}
	return call, checkIdentity(call)
}

func formatCommandHook(call session.HookCall, text string) []byte {
	if silent(call, text) {
		return nothing()
	}
	switch call.Event {
	case session.EventStart, session.EventPrompt, session.EventTool:
		return encode(map[string]any{"hookSpecificOutput": map[string]string{
			"hookEventName":     call.HostEvent,
			"additionalContext": text,
		}})
	case session.EventStop:
		return encode(map[string]string{"decision": "block", "reason": text})
	default:
		return nothing()
	}
}
