// Package run is what all drivers of agent CLIs share: the process with its
// environment and the floor below it, the calls that wait for its answers, the
// stream of events, and the book of messages, questions and turns. A driver adds
// its Protocol. Ending what left a CLI's process group is the reaper's (package
// sandbox), not its own.
package run

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"bridge/backend/job"
	"bridge/backend/sandbox"
)

// everyProgram names what a program needs to find its user, its words and its
// own files. Keys and proxies are the owner's to list.
var everyProgram = []string{
	"HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME",
}

// everyProgramWindows is what Windows' own libraries look for besides.
var everyProgramWindows = []string{
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
	"APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// Environment is what a job's process gets to see: what every program needs,
// what the owner's config passes on, what the kind needs, and the job's marks.
// Later ones win; nobody but the driver says what the marks and TMPDIR are.
func Environment(spec job.Spec, more ...string) Environ {
	env := Environ{}
	names := everyProgram
	if runtime.GOOS == "windows" {
		names = slices.Concat(names, everyProgramWindows)
	}
	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			env.set(name + "=" + value)
		}
	}
	env.set(spec.Env...)
	env.set(more...)
	tmp := Temporary(spec)
	env.set("TMPDIR="+tmp, sandbox.JobVariable+"="+spec.Job, sandbox.TokenVariable+"="+spec.Token)
	if runtime.GOOS == "windows" {
		env.set("TMP="+tmp, "TEMP="+tmp)
	}
	return env
}

// Environ holds NAME=value by the name as the system compares names.
type Environ map[string]string

func (e Environ) set(pairs ...string) {
	for _, pair := range pairs {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			continue
		}
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		e[name] = pair
	}
}

// Get returns a variable's value, "" where it is not set.
func (e Environ) Get(name string) string {
	_, value, _ := strings.Cut(e[name], "=")
	return value
}

// list is what a process is started with, sorted.
func (e Environ) list() []string {
	pairs := make([]string, 0, len(e))
	for _, pair := range e {
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs)
	return pairs
}

// Pairs splits NAME=value into an object, as the CLIs' settings want it.
func Pairs(list []string) map[string]string {
	object := map[string]string{}
	for _, pair := range list {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			object[name] = value
		}
	}
	return object
}

// UserHome is the home folder of the user for whom the CLI runs.
func UserHome(env Environ) string {
	if runtime.GOOS == "windows" {
		return env.Get("USERPROFILE")
	}
	return env.Get("HOME")
}
