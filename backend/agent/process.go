package agent

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
)

// interpreters are the programs that run agents that are scripts. Node calls its main thread MainThread.
var interpreters = []string{"node", "nodejs", "MainThread", "bun", "deno"}

// KindOf returns the kind of agent of a process, or "" for another program. It uses
// the name of the process and, for an interpreter, the script that it runs.
func KindOf(process proc.Process) bridge.AgentKind {
	if kind := kindOfName(process.Name); kind != "" {
		return kind
	}
	if !slices.Contains(interpreters, strings.TrimSuffix(process.Name, ".exe")) {
		return ""
	}
	return kindOfScript(proc.CommandLine(process.PID))
}

// kindOfName also recognizes the names of builds, such as codex-x86_64-unknown-linux-musl.
func kindOfName(name string) bridge.AgentKind {
	name = strings.ToLower(name)
	for _, kind := range bridge.Kinds() {
		if program := Program(kind); program != "" && strings.HasPrefix(name, program) {
			return kind
		}
	}
	return ""
}

// kindOfScript returns the kind of agent whose script is the first non-option
// argument of an interpreter's command line.
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
		if kind := kindOfPackage(folder); kind != "" && slices.Contains(folders[:i], "node_modules") {
			return kind
		}
	}
	return ""
}

// kindOfPackage returns the kind of agent whose npm package has that folder, or "".
func kindOfPackage(folder string) bridge.AgentKind {
	for _, kind := range bridge.Kinds() {
		if name := bridge.TraitsOf(kind).Package; name != "" && name == folder {
			return kind
		}
	}
	return ""
}

// IsServer reports whether an agent's process serves other programs, by its command
// line. It returns false if that cannot be read.
func IsServer(kind bridge.AgentKind, pid int) bool {
	words := bridge.TraitsOf(kind).Serves
	return slices.ContainsFunc(proc.CommandLine(pid), func(word string) bool { return slices.Contains(words, word) })
}

// Nearest returns the index and the kind of the nearest agent process of a list,
// nearest first. A process for which isKnown returns true also counts as an agent,
// with the kind "". It returns -1 if there is none.
func Nearest(above []proc.Process, isKnown func(pid int) bool) (at int, kind bridge.AgentKind) {
	for i, process := range above {
		if kind := KindOf(process); kind != "" || isKnown(process.PID) {
			return i, kind
		}
	}
	return -1, ""
}
