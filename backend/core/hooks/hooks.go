// Package hooks is the interface to agent CLIs for programs that they call: the formats
// of their hooks and plugins (ParseHook, FormatHook), and the folder from their
// environment (CLIDataDir). One adapter reads the format of each kind from its traits. Each
// hook is a new process, so this package must stay small.
package hooks

import (
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
)

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
