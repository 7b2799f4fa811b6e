package hooks

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// codex is kind B. Its hooks use claude's formats; in a native child, session_id is the
// root thread and agent_id the child's.
type codex struct{}

// InterruptEvent is the codex hook event for a turn that the user interrupted.
const InterruptEvent = "Interrupt"

func (codex) Kind() bridge.AgentKind { return bridge.Codex }

func (codex) TaskOf(event string) Task {
	if event == PermissionEvent {
		return ReportPrompt
	}
	return Report
}

func (codex) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	return parseCommandHook(bridge.Codex, event, stdin)
}

func (codex) FormatHook(call session.HookCall, text string) []byte {
	if silent(call, text) {
		return nothing()
	}
	switch call.Event {
	case session.EventStart, session.EventPrompt, session.EventTool:
		return addContext(call, text)
	case session.EventStop:
		return Encode(map[string]string{"decision": "block", "reason": text})
	default:
		return nothing()
	}
}
