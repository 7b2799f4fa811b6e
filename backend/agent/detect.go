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
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/shellenv"
)

// versionTimeout is the timeout of `--version`. The slowest CLI needs half a second
// on an idle machine, and was seen to need more than ten on a very busy one.
const versionTimeout = 30 * time.Second

// Found is an agent CLI on this machine.
type Found struct {
	Path    string
	Version string // "" if the CLI did not report it
	Note    string // a sentence if the version is not a tested one
}

// Lookup controls the search for a CLI.
type Lookup struct {
	Env        func(string) string // BRIDGE_<KIND>_BIN; also PATH if Environ is nil
	Configured string              // agents.<kind>.bin of config.json; "" if unset
	// Environ returns the environment of a new terminal of the owner. Its PATH is
	// searched, and CLIs are queried in it (RWM-07). It is nil in a program that
	// has that environment itself.
	Environ func() []string
	// Refresh refreshes Environ if a program is not found, and reports whether the
	// PATH changed; nil does nothing.
	Refresh func() bool
}

// variable returns the value of a variable used in the search for programs.
func (l Lookup) variable(name string) string {
	if l.Environ == nil {
		return l.Env(name)
	}
	return shellenv.Variable(l.Environ(), name)
}

// Folders returns the folders of the PATH in which programs are searched, each once.
func (l Lookup) Folders() (folders []string) {
	for _, folder := range filepath.SplitList(l.variable("PATH")) {
		if folder != "" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// environ returns the environment for querying a CLI; nil means this process's.
func (l Lookup) environ() []string {
	if l.Environ == nil {
		return nil
	}
	return l.Environ()
}

// onPath finds a program by its name. If it is not found, it queries the owner's
// shell again, because an installation may have changed the shell's files.
func (l Lookup) onPath(name string) (path string, found bool) {
	path, found = onPath(name, l.variable)
	if !found && l.Refresh != nil && l.Refresh() {
		path, found = onPath(name, l.variable)
	}
	return path, found
}

// Program returns the name of kind's program, which is also its process name.
func Program(kind bridge.AgentKind) string { return bridge.TraitsOf(kind).Program }

// Detect finds the CLI of kind and queries its version. It fails as [Locate] does.
func Detect(ctx context.Context, kind bridge.AgentKind, where Lookup) (Found, error) {
	path, err := Locate(kind, where)
	if err != nil {
		return Found{}, err
	}
	return inspect(ctx, kind, path, where.environ()), nil
}

// Detector finds CLIs repeatedly. It starts one for its version only if its program
// file has changed.
type Detector struct {
	mu    sync.Mutex // held during a query, so that concurrent callers share one
	known map[bridge.AgentKind]detected
}

type detected struct {
	found Found
	file  os.FileInfo
}

// Detect does what the package function [Detect] does, with a cache.
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

// Locate finds the program of kind: BRIDGE_<KIND>_BIN first, then the configured
// path, then PATH. It fails with Invalid if a given path holds no program, and with
// NotFound without any CLI.
func Locate(kind bridge.AgentKind, where Lookup) (string, error) {
	variable := "BRIDGE_" + strings.ToUpper(string(kind)) + "_BIN"
	for _, named := range []struct{ path, source string }{
		{where.Env(variable), variable},
		{where.Configured, "agents." + string(kind) + ".bin"},
	} {
		if named.path == "" {
			continue
		}
		path, err := filepath.Abs(named.path)
		if err != nil || !isProgram(path) {
			return "", bridge.Errorf(bridge.Invalid, "%s names %s, which is no program", named.source, named.path)
		}
		return path, nil
	}
	program := Program(kind)
	if path, found := where.onPath(program); found {
		return path, nil
	}
	return "", bridge.Errorf(bridge.NotFound, "%s is not on this PC: %s is not on PATH", kind, program)
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

// argv returns the command line that starts a program. A script without an
// interpreter line is for the shell, as every shell treats it. An opencode whose
// npm install script did not run is such a script, and prints advice.
func argv(path string, args ...string) []string {
	command := append([]string{path}, args...)
	if runtime.GOOS == "windows" {
		return command
	}
	file, err := os.Open(path)
	if err != nil {
		return command // starting it reports the error
	}
	defer file.Close()
	begin := make([]byte, 128)
	n, _ := io.ReadFull(file, begin)
	if n == 0 || bytes.HasPrefix(begin, []byte("#!")) || bytes.IndexByte(begin[:n], 0) >= 0 {
		return command
	}
	return append([]string{"/bin/sh"}, command...)
}

// inspect queries the CLI's version in an environment, or nil for this process's. A
// CLI that does not answer still counts as found.
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
