package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"bridge/backend/bridge"
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
	Env        func(string) string // BRIDGE_<KIND>_BIN, PATH
	Configured string              // agents.<kind>.bin of config.json, "" when unset
}

// tried are the versions of the CLIs that Bridge was tried with, oldest and
// newest. Antigravity has no public package to try.
var tried = map[bridge.AgentKind][2]string{
	bridge.Claude:   {"2.1.329", "2.1.329"},
	bridge.Codex:    {"0.160.1", "0.169.0"},
	bridge.OpenCode: {"1.18.33", "1.18.33"},
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
	return inspect(ctx, kind, path), nil
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
	for _, dir := range filepath.SplitList(where.Env("PATH")) {
		for _, suffix := range programSuffixes(where.Env) {
			path := filepath.Join(dir, programs[kind]+suffix)
			if filepath.IsAbs(path) && isProgram(path) {
				return path, nil
			}
		}
	}
	return "", bridge.Errorf(bridge.NotFound, "%s is not on this PC: %s is not on PATH", kind, programs[kind])
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

// inspect asks the CLI for its version. One that does not answer is found all
// the same.
func inspect(ctx context.Context, kind bridge.AgentKind, path string) Found {
	found := Found{Path: path}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		found.Note = "It did not tell its version."
		return found
	}
	found.Version = versionPattern.FindString(out.String())
	found.Note = versionNote(kind, found.Version)
	return found
}

var versionPattern = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+`)

func versionNote(kind bridge.AgentKind, version string) string {
	span, known := tried[kind]
	switch {
	case !known:
		return "Bridge was tried with a stand-in for this CLI only."
	case version == "":
		return "It did not tell its version."
	case compareVersions(version, span[0]) < 0:
		return "Version " + version + " is older than " + span[0] + ", the oldest that Bridge was tried with."
	case compareVersions(version, span[1]) > 0:
		return "Version " + version + " is newer than " + span[1] + ", the newest that Bridge was tried with."
	default:
		return ""
	}
}

// compareVersions compares dotted numbers: negative when a is older than b.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i]) // the pattern lets only digits through
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x - y
		}
	}
	return len(as) - len(bs)
}
