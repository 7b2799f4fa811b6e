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

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
)

// everyProgram names what a program needs to find its user, its words and its
// own files. Keys and proxies are the owner's to list.
var everyProgram = []string{
	"HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
}

// everyProgramWindows is what Windows' own libraries look for besides.
var everyProgramWindows = []string{
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
	"APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// withholding is some variables that a job does not get, and why.
type withholding struct {
	names []string
	why   string
}

// withheld are the variables that no job of any kind gets from an environment. A name may end with *.
// The traits of the kinds have more.
var withheld = []withholding{
	{[]string{"BRIDGE_*"}, "Bridge says itself what a job hears of it"},
	{[]string{"TMPDIR", "TMP", "TEMP"}, "a job has a folder of its own for that"},
	{[]string{"PWD", "OLDPWD", "SHLVL", "_"}, "they are about another process"},
	{[]string{"INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_*", "MAINPID", "MANAGERPID", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID", "WATCHDOG_*"}, "they are between a service and its manager"},
}

// repositoryVariables point a git to a repository, or say what that one is like: git itself
// takes them away before it works in another repository (RWM-06). No job gets them.
var repositoryVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ATTR_SOURCE", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*",
	"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_VALUE_*", "GIT_DIR", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE",
	"GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REF_STORAGE_FORMAT",
	"GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

func isOfRepository(name string) bool {
	return fitsOne(repositoryVariables, name)
}

// Inherited is what a job of a kind gets of an environment: all but what is withheld.
func Inherited(kind bridge.AgentKind, environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == "" || isOfRepository(name) || fitsOne(bridge.TraitsOf(kind).Jobs.Withheld, name) || isMark(name) ||
			slices.ContainsFunc(withheld, func(w withholding) bool { return fitsOne(w.names, name) })
	})
}

// isMark reports whether some kind of agent marks the processes that it starts by that
// variable.
func isMark(name string) bool {
	return slices.ContainsFunc(bridge.Kinds(), func(kind bridge.AgentKind) bool { return fitsOne(bridge.TraitsOf(kind).Jobs.Marks, name) })
}

func fitsOne(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return fits(pattern, name) })
}

// fits compares names as the system does.
func fits(pattern, name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
	}
	begin, some := strings.CutSuffix(pattern, "*")
	return name == pattern || some && strings.HasPrefix(name, begin)
}

// Environment is what a job's process gets to see: what every program needs,
// what the owner's environment and config pass on, what the kind needs, and the job's
// marks. Later ones win; only the driver sets the marks and TMPDIR.
func Environment(spec job.Spec, more ...string) Environ {
	env := Environ{}
	names := everyProgram
	if runtime.GOOS == "windows" {
		names = slices.Concat(names, everyProgramWindows)
	}
	for _, kind := range bridge.Kinds() {
		if data := bridge.TraitsOf(kind).Data; data.Variable != "" {
			names = append(slices.Clip(names), data.Variable)
		}
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
		name, _, has := strings.Cut(pair, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		switch {
		case name == "" || isOfRepository(name):
		case has:
			e[name] = pair
		default: // it is taken away
			delete(e, name)
		}
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
