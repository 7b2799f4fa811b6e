package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/shellenv"
)

// versionTimeout bounds `--version`. The slowest CLI needs half a second when
// the machine is idle, and was seen to need more than ten when it is very busy.
const versionTimeout = 30 * time.Second

// Found is an agent CLI on this machine.
type Found struct {
	Path    string
	Version string // "" when the CLI did not say
	Note    string // a sentence when the version is not one that Bridge was tried with
}

// Lookup says where to look for a CLI.
type Lookup struct {
	Env        func(string) string // BRIDGE_<KIND>_BIN; PATH where Environ is nil
	Configured string              // agents.<kind>.bin of config.json, "" when unset
	// Environ returns the environment of a new terminal of the owner's, whose PATH is
	// searched and in which CLIs are asked (RWM-07). It is nil in a program that has that
	// environment itself.
	Environ func() []string
	// Refresh has Environ asked anew where a program is not found, and reports whether the
	// PATH changed; nil does nothing.
	Refresh func() bool
}

// variable returns a variable by which programs are found.
func (l Lookup) variable(name string) string {
	if l.Environ == nil {
		return l.Env(name)
	}
	return shellenv.Variable(l.Environ(), name)
}

// environ is what a CLI is asked in; nil is this process's.
func (l Lookup) environ() []string {
	if l.Environ == nil {
		return nil
	}
	return l.Environ()
}

// onPath finds a program by its name. Where it is not found, the owner's shell is asked
// again: a program that was installed meanwhile may have changed its files.
func (l Lookup) onPath(name string) (path string, found bool) {
	path, found = onPath(name, l.variable)
	if !found && l.Refresh != nil && l.Refresh() {
		path, found = onPath(name, l.variable)
	}
	return path, found
}

// programs are the CLIs' names on PATH.
var programs = map[bridge.AgentKind]string{
	bridge.Claude:      "claude",
	bridge.Codex:       "codex",
	bridge.OpenCode:    "opencode",
	bridge.Antigravity: "agy",
}

// Program is the name of kind's program, and so of its process.
func Program(kind bridge.AgentKind) string { return programs[kind] }

// Detect finds the CLI of kind and asks it for its version.
func Detect(ctx context.Context, kind bridge.AgentKind, where Lookup) (Found, error) {
	path, err := Locate(kind, where)
	if err != nil {
		return Found{}, err
	}
	return inspect(ctx, kind, path, where.environ()), nil
}

// Detector finds CLIs again and again, and starts one for its version only when
// its program is another file than before.
type Detector struct {
	mu    sync.Mutex // held while asking, so that of many one asks
	known map[bridge.AgentKind]detected
}

type detected struct {
	found Found
	file  os.FileInfo
}

// Detect is Detect of this package.
func (d *Detector) Detect(ctx context.Context, kind bridge.AgentKind, where Lookup) (Found, error) {
	path, err := Locate(kind, where)
	if err != nil {
		return Found{}, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return Found{}, fmt.Errorf("look at %s: %w", path, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[kind]
	if last.found.Path == path && last.found.Version != "" && os.SameFile(last.file, file) && last.file.ModTime().Equal(file.ModTime()) && last.file.Size() == file.Size() {
		return last.found, nil
	}
	found := inspect(ctx, kind, path, where.environ())
	if d.known == nil {
		d.known = map[bridge.AgentKind]detected{}
	}
	d.known[kind] = detected{found, file}
	return found, nil
}

// Locate finds the program of kind: BRIDGE_<KIND>_BIN first, then the
// configured path, then PATH. A path that was named but holds no program is
// bridge.Invalid, no CLI at all bridge.NotFound.
func Locate(kind bridge.AgentKind, where Lookup) (string, error) {
	variable := "BRIDGE_" + strings.ToUpper(string(kind)) + "_BIN"
	for _, named := range []struct{ path, by string }{
		{where.Env(variable), variable},
		{where.Configured, "agents." + string(kind) + ".bin"},
	} {
		if named.path == "" {
			continue
		}
		path, err := filepath.Abs(named.path)
		if err != nil || !isProgram(path) {
			return "", bridge.Errorf(bridge.Invalid, "%s names %s, which is no program", named.by, named.path)
		}
		return path, nil
	}
	if path, found := where.onPath(programs[kind]); found {
		return path, nil
	}
	return "", bridge.Errorf(bridge.NotFound, "%s is not on this PC: %s is not on PATH", kind, programs[kind])
}

// onPath finds a program by its name.
func onPath(name string, env func(string) string) (path string, found bool) {
	for _, dir := range filepath.SplitList(env("PATH")) {
		for _, suffix := range programSuffixes(env) {
			path := filepath.Join(dir, name+suffix)
			if filepath.IsAbs(path) && isProgram(path) {
				return path, true
			}
		}
	}
	return "", false
}

func programSuffixes(env func(string) string) []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	if list := env("PATHEXT"); list != "" {
		return strings.Split(strings.ToLower(list), ";")
	}
	return []string{".exe", ".cmd", ".bat"}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}

// argv is how a program is started. A text that does not say by what is one for the shell,
// as it is for every shell: an opencode whose install script npm did not run is such a
// text, and says what to do.
func argv(path string, args ...string) []string {
	command := append([]string{path}, args...)
	if runtime.GOOS == "windows" {
		return command
	}
	file, err := os.Open(path)
	if err != nil {
		return command // starting it says what is wrong
	}
	defer file.Close()
	begin := make([]byte, 128)
	n, _ := io.ReadFull(file, begin)
	if n == 0 || bytes.HasPrefix(begin, []byte("#!")) || bytes.IndexByte(begin[:n], 0) >= 0 {
		return command
	}
	return append([]string{"/bin/sh"}, command...)
}

// inspect asks the CLI for its version, in an environment, nil for this process's. One that
// does not answer is found all the same.
func inspect(ctx context.Context, kind bridge.AgentKind, path string, environ []string) Found {
	found := Found{Path: path, Note: versionNote(kind, "")}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	command := argv(path, "--version")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environ, AskFolder(), time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return found
	}
	found.Version = versionPattern.FindString(out.String())
	found.Note = versionNote(kind, found.Version)
	return found
}
