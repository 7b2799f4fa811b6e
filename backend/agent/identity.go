package agent

import "bridge/backend/core/bridge"

// Caller is the caller of an MCP tool, as far as the host names it. Each field may be "".
type Caller struct {
	SessionID string // the host session id
	ChildID   string // the native child
	ToolUseID string // the id of the call in the host's hooks
}

// callers read the caller of an MCP tools/call from the host's _meta, for the kinds that
// name it there.
var callers = map[bridge.AgentKind]func(meta map[string]any) Caller{
	bridge.Claude: claudeCaller,
	bridge.Codex:  codexCaller,
}

// CallerOf returns the caller of an MCP tools/call from the host's _meta. It returns the zero
// value if that does not name one.
func CallerOf(kind bridge.AgentKind, meta map[string]any) Caller {
	if read := callers[kind]; read != nil {
		return read(meta)
	}
	return Caller{}
}
