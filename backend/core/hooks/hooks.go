// Package hooks is what the agent CLIs are to a program that they call: what
// their hooks and plugins say and want to hear (ParseHook, FormatHook), and the
// folder that their environment names (CLIDataDir). One file per kind. A hook is
// a process of its own each time, so nothing heavy may stand here.
package hooks

import (
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Adapter is how the hooks of one kind of agent CLI speak. An adapter has no
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

// CLIDataDir is the folder where the CLI of kind keeps what it knows of its
// sessions: the one that env names, else the usual one below home. "" for a kind
// whose store is not read.
func CLIDataDir(kind bridge.AgentKind, home string, env func(string) string) string {
	switch kind {
	case bridge.Claude:
		return Folder(home, env, "CLAUDE_CONFIG_DIR", ".claude")
	case bridge.Codex:
		return Folder(home, env, "CODEX_HOME", ".codex")
	case bridge.OpenCode:
		return filepath.Join(Folder(home, env, "XDG_DATA_HOME", ".local", "share"), "opencode")
	default:
		return ""
	}
}

// Folder is the folder that an environment variable names, or elements below the
// user's home.
func Folder(home string, env func(string) string, variable string, elements ...string) string {
	if env != nil {
		if dir := env(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(append([]string{home}, elements...)...)
}

// ClaudeProject returns the name of the folder below projects in which claude keeps the
// sessions of a working folder.
func ClaudeProject(cwd string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, cwd)
}
