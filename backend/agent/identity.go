package agent

import (
	"cmp"

	"bridge/backend/core/bridge"
)

// Caller is the caller of an MCP tool, as far as the host names it. Each field may be "".
type Caller struct {
	SessionID string // the host session id
	ChildID   string // the native child
	ToolUseID string // the id of the call in the host's hooks
}

// CallerOf returns the caller of an MCP tools/call from the host's _meta, by the traits of
// its kind. It returns the zero value if that does not name one, or names an invalid id.
func CallerOf(kind bridge.AgentKind, meta map[string]any) (caller Caller) {
	names := bridge.TraitsOf(kind).MCP.Caller
	if id := textAt(meta, names.ToolUse); bridge.CheckID("the tool use id", id) == nil {
		caller.ToolUseID = id
	}
	thread := textAt(meta, names.Thread)
	root, child := cmp.Or(textAt(meta, names.Session), thread), ""
	if thread != root {
		child = thread
	}
	if bridge.CheckID("the session id", root) == nil && (child == "" || bridge.CheckID("the child's id", child) == nil) {
		caller.SessionID, caller.ChildID = root, child
	}
	return caller
}

// textAt returns the first text at one of the paths that is not empty, or "".
func textAt(meta map[string]any, paths [][]string) string {
	for _, path := range paths {
		inner, last := meta, len(path)-1
		for _, name := range path[:last] {
			inner, _ = inner[name].(map[string]any)
		}
		if text, _ := inner[path[last]].(string); text != "" {
			return text
		}
	}
	return ""
}
