package hooks

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// opencode is kind C. It has no hook commands: its plugin reports events as lines to
// `bridge plugin opencode` (plugin_lines.go), and ParseHook decodes the call of one
// line.
type opencode struct{}

func (opencode) Kind() bridge.AgentKind { return bridge.OpenCode }

// opencodeAsks is the event of a permission prompt.
const opencodeAsks = "permission.asked"

// opencodeEvents are the plugin's events, under opencode's own names.
var opencodeEvents = map[string]session.Event{
	"session.created":     session.EventStart,
	"session.child":       session.EventChildStart,
	"session.child.idle":  session.EventChildStop,
	"chat.message":        session.EventPrompt,
	"tool.execute.before": session.EventPreTool,
	"tool.execute.after":  session.EventTool,
	"session.idle":        session.EventIdle,
	"session.deleted":     session.EventEnd,
	opencodeAsks:          session.EventAsk,
}

func (opencode) TaskOf(string) Task { return Report }

func (opencode) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	known, err := eventOf(bridge.OpenCode, opencodeEvents, event)
	if err != nil {
		return session.HookCall{}, err
	}
	var in PluginCall
	if err := decodeHook(stdin, &in); err != nil {
		return session.HookCall{}, err
	}
	call := session.HookCall{
		Kind:       bridge.OpenCode,
		Event:      known,
		HostEvent:  event,
		SessionID:  string(in.SessionID),
		ChildID:    string(in.ChildID),
		ChildTitle: Shorten(string(in.ChildTitle), bridge.MaxNameChars),
		Cwd:        Shorten(string(in.Cwd), bridge.MaxPathChars),
		Prompt:     Shorten(string(in.Prompt), maxPromptChars),
		ToolUseID:  Shorten(string(in.ToolUseID), bridge.MaxIDChars),
	}
	call.Works = known == session.EventTool && isWork(string(in.Tool), "bridge_")
	return call, checkIdentity(call)
}

func (opencode) FormatHook(call session.HookCall, text string) []byte {
	if silent(call, text) || !call.AcceptsMail() {
		return nothing()
	}
	return Encode(map[string]string{"text": text})
}
