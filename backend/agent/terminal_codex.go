package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/platform/proc"
)

// Terminals are codex processes in terminals whose conversations a background server runs.
type Terminals []proc.InTerminal

// CodexTerminals returns the codex processes in terminals that show a conversation in that
// folder and keep their state in dataDir. It returns none if the system does not report them.
func CodexTerminals(cwd, dataDir string) Terminals {
	all, err := proc.InTerminals(func(process proc.Process) bool { return kindOfName(process.Name) == bridge.Codex })
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(process proc.InTerminal) bool {
		words := proc.CommandLine(process.PID)
		if len(words) > 1 && slices.Contains([]string{"exec", "e", "review", "app-server", "mcp-server", "queue"}, words[1]) || slices.Contains(words, "app-server") {
			return true
		}
		return !sameFolder(folderOf(process.Cwd, words), cwd) || dataDir != "" && !sameFolder(hooks.CLIDataDir(bridge.Codex, getenv(process.Environ)("HOME"), getenv(process.Environ)), dataDir)
	})
}

// folderOf returns the folder in which a codex works.
func folderOf(cwd string, words []string) string {
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		if name != "-C" && name != "--cd" {
			continue
		}
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		if filepath.IsAbs(value) {
			return value
		}
		return filepath.Join(cwd, value)
	}
	return cwd
}

func sameFolder(folder, other string) bool {
	if folder == other {
		return true
	}
	real, err := filepath.EvalSymlinks(folder)
	otherReal, otherErr := filepath.EvalSymlinks(other)
	return err == nil && otherErr == nil && real == otherReal
}

func getenv(environ []string) func(string) string {
	return func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// Newest returns the most recently started terminal for which accepts returns true.
func (all Terminals) Newest(accepts func(proc.Named) bool) (found proc.Named, ok bool) {
	var newest proc.Process
	for _, process := range all {
		if accepts(process.Named) && (!ok || process.StartedAfter(newest)) {
			newest, found, ok = process.Process, process.Named, true
		}
	}
	return found, ok
}

// inputAge is the maximum age of a person's last key for a terminal to count as the
// one just typed into.
const inputAge = proc.ReadStep + 4*time.Second

// TypedInto returns the terminal that was just typed into. ok is false if there is
// none, or if it is ambiguous.
func (all Terminals) TypedInto(now time.Time) (found proc.Named, ok bool) {
	var last, before time.Time
	for _, process := range all {
		switch {
		case process.Read.After(last):
			before, last, found = last, process.Read, process.Named
		case process.Read.After(before):
			before = process.Read
		}
	}
	if last.IsZero() || now.Sub(last) > inputAge || last.Sub(before) < proc.ReadStep {
		return proc.Named{}, false
	}
	return found, true
}
