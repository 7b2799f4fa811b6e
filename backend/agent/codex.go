package agent

import (
	"bridge/backend/bridge"
	"bridge/backend/session"
)

// codex is kind B. Its hooks speak claude's shapes; inside a native child
// session_id is the root thread and agent_id the child's.
type codex struct{}

func (codex) Kind() bridge.AgentKind { return bridge.Codex }

// codexEvents are the hook events that Bridge registers.
var codexEvents = map[string]session.Event{
	"SessionStart":     session.EventStart,
	"UserPromptSubmit": session.EventPrompt,
	"PreToolUse":       session.EventPreTool,
	"PostToolUse":      session.EventTool,
	"Stop":             session.EventStop,
	"SubagentStart":    session.EventChildStart,
	"SubagentStop":     session.EventChildStop,
	"SessionEnd":       session.EventEnd,
}

func (codex) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	return parseCommandHook(bridge.Codex, codexEvents, event, stdin)
}

func (codex) FormatHook(call session.HookCall, text string) []byte {
	return formatCommandHook(call, text)
}

// CodexIdentity returns who makes an MCP tools/call, as codex tells it in every
// call's _meta: sessionID is the root thread, childID the calling thread when
// that is another one. ok is false when the call names no thread.
func CodexIdentity(meta map[string]any) (sessionID, childID string, ok bool) {
	thread, _ := meta["threadId"].(string)
	root, _ := meta["sessionId"].(string)
	if turn, isMap := meta["x-codex-turn-metadata"].(map[string]any); isMap {
		thread = firstNonEmpty(thread, turn["thread_id"])
		root = firstNonEmpty(root, turn["session_id"])
	}
	if root == "" {
		root = thread
	}
	if thread != root {
		childID = thread
	}
	call := session.HookCall{SessionID: root, ChildID: childID}
	if checkIdentity(call) != nil {
		return "", "", false
	}
	return root, childID, true
}

// firstNonEmpty returns have, or other's string when have is empty.
func firstNonEmpty(have string, other any) string {
	if have != "" {
		return have
	}
	s, _ := other.(string)
	return s
}
