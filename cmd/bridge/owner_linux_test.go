package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/testing/testkit"
)

const otherUser = 65534

// ofAnother makes the home folder of another user, with settings of agents.
func ofAnother(t *testing.T) (dir, user string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir = shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users start programs there
		t.Fatal(err)
	}
	user = filepath.Join(dir, "ann")
	for path, text := range map[string]string{".claude.json": `{"a": 1}`, ".claude/settings.json": `{}`, ".codex/config.toml": "", ".bridge/token": "damaged\n", ".bridge/logs/old": ""} {
		path = filepath.Join(user, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(user, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, otherUser, otherUser)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return dir, user
}

// notOf returns the files below a folder that do not belong to a user.
func notOf(t *testing.T, uid uint32, folder string) (others []string) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != uid {
			others = append(others, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return others
}

func runAs(t *testing.T, uid uint32, environ []string, args ...string) (output string, err error) {
	t.Helper()
	program, err := exec.LookPath(args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), environ...), "/"
	cmd.Stdin = strings.NewReader(`{"session_id":"s","cwd":"/","hook_event_name":"Stop"}`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// Root with the HOME of a user, as in `sudo -E` and in a container, leaves nothing there.
func TestRWM_10_RootLeavesNothingInAUsersHome(t *testing.T) {
	dir, user := ofAnother(t)
	before := notOf(t, otherUser, user)
	claude := filepath.Join(dir, "claude")
	if err := testkit.WriteProgram(claude, []byte("#!/bin/sh\n: >\"$HOME/started\"\necho 2.1.329\n"), 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own")
	for name, tt := range map[string]struct {
		environ []string
		args    string
		quiet   bool // it says nothing of it: a hook disturbs no session, and others only look
	}{
		"install":                        {args: "bridge install claude --yes"},
		"install with a home of its own": {[]string{"BRIDGE_HOME=" + own}, "bridge install claude --yes", false},
		"install into a folder of another user's": {
			[]string{"HOME=" + own, "CLAUDE_CONFIG_DIR=" + filepath.Join(user, ".codex")}, "bridge install claude --yes", false,
		},
		"uninstall":             {args: "bridge uninstall --yes"},
		"serve":                 {args: "bridge serve --port 0"},
		"serve in a home there": {args: "bridge serve --port 0 --home " + filepath.Join(user, "h/i")},
		"url":                   {args: "bridge url"},
		"status":                {args: "bridge status", quiet: true},
		"send":                  {args: "bridge send a b"},
		"doctor":                {args: "bridge doctor --fix --yes"},
		"restore":               {args: "bridge doctor --restore latest --yes"},
		"service":               {args: "bridge service install"},
		"service elsewhere":     {[]string{"BRIDGE_HOME=" + own}, "bridge service install", false},
		"mcp":                   {args: "bridge mcp --agent claude"},
		"bridge-mcp":            {args: "bridge-mcp mcp --agent claude"},
		"hook":                  {args: "bridge hook claude Stop", quiet: true},
		"bridge-hook":           {args: "bridge-hook claude SessionStart", quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			environ := append([]string{"HOME=" + user, "BRIDGE_HOME=", "BRIDGE_CLAUDE_BIN=" + claude, "SUDO_USER="}, tt.environ...)
			said, err := runAs(t, 0, environ, strings.Fields(tt.args)...)
			const want = "(uid 65534), not to you (root (uid 0))"
			if !tt.quiet && (err == nil || !strings.Contains(said, want)) || tt.quiet && strings.Contains(said, want) {
				t.Errorf("%v: %s", err, said)
			}
			if after := notOf(t, otherUser, user); len(after) > len(before) {
				t.Errorf("it left %q", after)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(user, "started")); err == nil {
		t.Error("an agent was started there")
	}
}

// A container gives a user without a name a home of root's: where it may write there, it
// works, and where not, it is told so.
func TestRWM_10_AUserInAHomeOfRoots(t *testing.T) {
	dir, _ := ofAnother(t)
	for name, tt := range map[string]struct {
		mode fs.FileMode
		want string
	}{
		"closed": {0o755, "home belongs to root (uid 0), not to you"},
		"open":   {0o777 | fs.ModeSticky, "Connected."},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(dir, name, "home")
			claude := filepath.Join(dir, name, "claude")
			if err := os.MkdirAll(home, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(home, tt.mode); err != nil {
				t.Fatal(err)
			}
			if err := testkit.WriteProgram(claude, []byte("#!/bin/sh\necho 2.1.329\n"), 0o755); err != nil { //nolint:gosec // it is to be run
				t.Fatal(err)
			}
			program := copyOfBridge(t, filepath.Join(dir, name, "bridge"))
			said, err := runAs(t, 12345, []string{"HOME=" + home, "BRIDGE_HOME=", "BRIDGE_CLAUDE_BIN=" + claude, "TMPDIR=/tmp"}, program, "install", "claude", "--yes")
			if !strings.Contains(said, tt.want) {
				t.Errorf("it says %q, %v, want %q", said, err, tt.want)
			}
			for _, path := range notOf(t, 12345, home) {
				if path != home {
					t.Errorf("%s is not the user's", path)
				}
			}
		})
	}
}

// copyOfBridge puts the program where every user reaches it.
func copyOfBridge(t *testing.T, to string) string {
	t.Helper()
	from, err := exec.LookPath("bridge")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(to, data, 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return to
}
