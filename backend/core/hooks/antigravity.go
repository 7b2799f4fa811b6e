package hooks

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// antigravity is kind D. Text reaches the model as an injected step before a request,
// and as the reason to continue at a stop.
type antigravity struct{}

func (antigravity) Kind() bridge.AgentKind { return bridge.Antigravity }

// antigravityEvents are the hook events that Bridge registers. PreInvocation precedes
// every request to the model, so each is a safe step.
var antigravityEvents = map[string]session.Event{
	"PreInvocation": session.EventTool,
	"PreToolUse":    session.EventPreTool,
	"Stop":          session.EventStop,
}

// antigravityHook is the host's input. A native child has its own conversation id and
// no reference to its parent: the broker identifies it by the process.
type antigravityHook struct {
	ConversationID Text   `json:"conversationId"`
	WorkspacePaths []Text `json:"workspacePaths"`
}

func (antigravity) TaskOf(string) Task { return Report }

func (antigravity) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	known, err := eventOf(bridge.Antigravity, antigravityEvents, event)
	if err != nil {
		return session.HookCall{}, err
	}
	var in antigravityHook
	if err := decodeHook(stdin, &in); err != nil {
		return session.HookCall{}, err
	}
	call := session.HookCall{
		Kind:      bridge.Antigravity,
		Event:     known,
		HostEvent: event,
		SessionID: string(in.ConversationID),
	}
	if len(in.WorkspacePaths) > 0 {
		call.Cwd = Shorten(string(in.WorkspacePaths[0]), bridge.MaxPathChars)
	}
	return call, checkIdentity(call)
}

func (antigravity) FormatHook(call session.HookCall, text string) []byte {
	if silent(call, text) {
		return nothing()
	}
	switch call.Event {
	case session.EventStart, session.EventPrompt, session.EventTool:
		return Encode(map[string]any{"injectSteps": []map[string]string{{"ephemeralMessage": text}}})
	case session.EventStop:
		return Encode(map[string]string{"decision": "continue", "reason": text})
	default:
		return nothing()
	}
}
