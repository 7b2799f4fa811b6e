// Package hooks is the interface to agent CLIs for programs that they call: the formats
// of their hooks and plugins (ParseHook, FormatHook), and the folder from their
// environment (CLIDataDir). Each kind has a file. Each hook is a new process, so this
// package must stay small.
package hooks

import (
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Adapter translates the hooks of one kind of agent CLI. It has no state and is safe
// for concurrent use.
type Adapter interface {
	// Kind returns the kind of the CLI.
	Kind() bridge.AgentKind

	// ParseHook decodes one hook call. event is the host's event name from the command
	// line, stdin the host's input. It ignores unknown fields. It fails with
	// bridge.Invalid for an event that Bridge does not use, and for input without a
	// valid session id. The caller then answers the host with
	// FormatHook(session.HookCall{}, "").
	ParseHook(event string, stdin []byte) (session.HookCall, error)

	// TaskOf returns what the hook program does for an event.
	TaskOf(event string) Task

	// FormatHook returns the host's JSON that gives text to the model in answer to
	// call. It returns an empty object if text is empty or the event cannot have text.
	// It also does so for every call from a native child.
	FormatHook(call session.HookCall, text string) []byte
}

// Task is what the hook program does for one event of a host.
type Task int

// The tasks.
const (
	Report         Task = iota // tell the broker, and answer with its text
	ReportOutcome              // the same, but only while a permission prompt is open
	ReportPrompt               // tell the broker of a permission prompt that the terminal decides
	HoldPrompt                 // wait for the owner's answer to a permission prompt
	WaitForMail                // wait until mail may wake the idle session
	StandByForMail             // the same, for a host whose first wait failed
)

// For returns the adapter of kind, or nil for a kind that is no agent CLI.
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

// CLIDataDir returns the folder of the CLI's session data: the one from env, or the
// default below home. It returns "" for a kind whose store Bridge does not read.
func CLIDataDir(kind bridge.AgentKind, home string, env func(string) string) string {
	data := bridge.TraitsOf(kind).Data
	if len(data.Default) == 0 {
		return ""
	}
	return filepath.Join(Folder(home, env, data.Variable, data.Default...), data.Within)
}

// Folder returns the folder from an environment variable, or elements below the user's
// home.
func Folder(home string, env func(string) string, variable string, elements ...string) string {
	if env != nil {
		if dir := env(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(append([]string{home}, elements...)...)
}

// ClaudeProject returns the name of claude's folder below projects for the sessions of
// a working folder.
func ClaudeProject(cwd string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, cwd)
}
