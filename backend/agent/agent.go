// Package agent knows the four agent CLIs: who calls an MCP tool (CodexIdentity,
// ClaudeToolUse), where they are (Detect) and how Bridge is connected to them
// and taken away again (PlanInstall, PlanRemoval, Apply; row MSG-11). One file per
// kind holds everything that is particular to it; nothing here talks to a
// broker. What their hooks say and want to hear is package host's, what their own
// stores hold is package clidata's.
package agent

import (
	"context"

	"bridge/backend/bridge"
)

// Adapter is what Bridge knows about one kind of agent CLI. An adapter has no
// state and may be used by several goroutines.
type Adapter interface {
	// Kind names the CLI.
	Kind() bridge.AgentKind

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
