package driver

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

// environment is what a job's process gets to see: what every program needs,
// what the owner's config passes on, what the kind needs, and the job's marks.
// Later ones win; nobody but the driver says what the marks and TMPDIR are.
func environment(spec job.Spec, more ...string) environ {
	env := environ{}
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
	tmp := temporary(spec)
	env.set("TMPDIR="+tmp, sandbox.JobVariable+"="+spec.Job, sandbox.TokenVariable+"="+spec.Token)
	if runtime.GOOS == "windows" {
		env.set("TMP="+tmp, "TEMP="+tmp)
	}
	return env
}

// environ holds NAME=value by the name as the system compares names.
type environ map[string]string

func (e environ) set(pairs ...string) {
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

// get returns a variable's value, "" where it is not set.
func (e environ) get(name string) string {
	_, value, _ := strings.Cut(e[name], "=")
	return value
}

// list is what a process is started with, sorted.
func (e environ) list() []string {
	pairs := make([]string, 0, len(e))
	for _, pair := range e {
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs)
	return pairs
}

// pairs splits NAME=value into an object, as the CLIs' settings want it.
func pairs(list []string) map[string]string {
	object := map[string]string{}
	for _, pair := range list {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			object[name] = value
		}
	}
	return object
}

// userHome is the home folder of the user for whom the CLI runs.
func userHome(env environ) string {
	if runtime.GOOS == "windows" {
		return env.get("USERPROFILE")
	}
	return env.get("HOME")
}
