// Package agent knows the four agent CLIs: what their hooks say and want to
// hear (ParseHook, FormatHook), who calls an MCP tool (CodexIdentity,
// ClaudeToolUse), where they are (Detect) and how Bridge is connected to them
// and taken away again (PlanInstall, PlanRemoval, Apply; row MSG-11). One file per
// kind holds everything that is particular to it; nothing here talks to a
// broker.
package agent

import (
	"context"

	"bridge/backend/bridge"
	"bridge/backend/session"
)

// Adapter is what Bridge knows about one kind of agent CLI. An adapter has no
// state and may be used by several goroutines.
type Adapter interface {
	// Kind names the CLI.
	Kind() bridge.AgentKind

	// ParseHook reads one hook call. event is the host's own event name as it
	// was given on the command line, stdin what the host wrote. Unknown fields
	// are ignored. It fails with bridge.Invalid for an event that Bridge does
	// not use and for input without a usable session id; the caller then
	// answers the host with FormatHook(session.HookCall{}, "").
	ParseHook(event string, stdin []byte) (session.HookCall, error)

	// FormatHook returns the host's JSON that puts text before the model in
	// answer to call. It is an empty object when text is empty, when the event
	// cannot carry text, and for every call from inside a native child.
	FormatHook(call session.HookCall, text string) []byte

	// connect lays out what has to be in which files to connect Bridge to the
	// CLI. before is what an earlier installation recorded, or nil.
	connect(ctx context.Context, in Input, before *installed) (layout, error)
}

// For returns the adapter of kind, nil for a kind that is no agent CLI.
func For(kind bridge.AgentKind) Adapter {
	switch kind {
	case bridge.Claude:
		return claude{}
	case bridge.Codex:
		return codex{}
	case bridge.OpenCode:
		return opencode{}
	case bridge.Antigravity:
		return antigravity{}
	default:
		return nil
	}
}
