package agent

import "bridge/backend/core/bridge"

// ClaudeToolUse returns the tool use id of an MCP tools/call from Claude Code. Its
// _meta does not name the agent; the PreToolUse hook with the same id does.
func ClaudeToolUse(meta map[string]any) (toolUseID string, ok bool) {
	toolUseID, _ = meta["claudecode/toolUseId"].(string)
	return toolUseID, bridge.CheckID("the tool use id", toolUseID) == nil
}

func claudeCaller(meta map[string]any) (caller Caller) {
	if toolUse, ok := ClaudeToolUse(meta); ok {
		caller.ToolUseID = toolUse
	}
	return caller
}
