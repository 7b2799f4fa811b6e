package agent

import "bridge/backend/core/bridge"

// CodexIdentity returns the caller of an MCP tools/call from codex's _meta.
// sessionID is the root thread; childID is the calling thread if that is another
// one. ok is false if the call names no thread.
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
	if bridge.CheckID("the session id", root) != nil || childID != "" && bridge.CheckID("the child's id", childID) != nil {
		return "", "", false
	}
	return root, childID, true
}

// firstNonEmpty returns have, or other's string if have is empty.
func firstNonEmpty(have string, other any) string {
	if have != "" {
		return have
	}
	s, _ := other.(string)
	return s
}

func codexCaller(meta map[string]any) (caller Caller) {
	if sessionID, childID, ok := CodexIdentity(meta); ok {
		caller.SessionID, caller.ChildID = sessionID, childID
	}
	return caller
}
