// Package agent knows the programs of the four agent CLIs: where they are (Detect),
// which versions Bridge was tried with, who calls an MCP tool (CodexIdentity,
// ClaudeToolUse) and codex's queue of input. Nothing here talks to a broker.
//
// Its two neighbours below this folder are setup, which connects Bridge to the
// CLIs, and clidata, which reads their own stores. What their hooks say and want
// to hear is package host's.
package agent
