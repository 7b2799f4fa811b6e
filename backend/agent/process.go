package agent

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
)

// interpreters run agents that are scripts. Node calls its main thread MainThread.
var interpreters = []string{"node", "nodejs", "MainThread", "bun", "deno"}

// packages are the folders of the agents' npm packages.
var packages = map[string]bridge.AgentKind{"claude-code": bridge.Claude, "codex": bridge.Codex, "opencode-ai": bridge.OpenCode}

// KindOf returns the kind of agent that a process is, "" for another program. It goes by
// the name of the process and, of an interpreter, by the script that it runs.
func KindOf(process proc.Process) bridge.AgentKind {
	if kind := kindOfName(process.Name); kind != "" {
		return kind
	}
	if !slices.Contains(interpreters, strings.TrimSuffix(process.Name, ".exe")) {
		return ""
	}
	return kindOfScript(proc.CommandLine(process.PID))
}

// kindOfName also knows the names of builds, such as codex-x86_64-unknown-linux-musl.
func kindOfName(name string) bridge.AgentKind {
	name = strings.ToLower(name)
	for _, kind := range bridge.Kinds() {
		if program := programs[kind]; program != "" && strings.HasPrefix(name, program) {
			return kind
		}
	}
	return ""
}

// kindOfScript returns the kind of agent whose script is the first word of an
// interpreter's command line that is no option.
func kindOfScript(words []string) bridge.AgentKind {
	if len(words) == 0 {
		return ""
	}
	at := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 {
		return ""
	}
	script := filepath.ToSlash(words[1+at])
	folders := strings.Split(script, "/")
	if kind := kindOfName(folders[len(folders)-1]); kind != "" {
		return kind
	}
	for i, folder := range folders {
		if kind := packages[folder]; kind != "" && slices.Contains(folders[:i], "node_modules") {
			return kind
		}
	}
	return ""
}

// servers are the commands by which an agent serves other programs.
var servers = map[bridge.AgentKind][]string{bridge.Codex: {"app-server"}, bridge.OpenCode: {"serve", "web", "acp"}}

// IsServer reports whether an agent's process serves other programs, as its command line
// says where that can be read.
func IsServer(kind bridge.AgentKind, pid int) bool {
	return slices.ContainsFunc(proc.CommandLine(pid), func(word string) bool { return slices.Contains(servers[kind], word) })
}

// Nearest returns the index of the nearest agent process of a list that begins with the
// nearest process, and its kind. It also takes a process for an agent that isKnown says
// to be one, with the kind "". It returns -1 where there is none.
func Nearest(above []proc.Process, isKnown func(pid int) bool) (at int, kind bridge.AgentKind) {
	for i, process := range above {
		if kind := KindOf(process); kind != "" || isKnown(process.PID) {
			return i, kind
		}
	}
	return -1, ""
}
