package run

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// A program can lie anywhere, and a PATH can name anything. Neither opens the owner's files
// to a job of another PC.
func TestSEC_04_NoProgramOpensTheOwnersFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no job of another PC is confined to paths here")
	}
	home := t.TempDir()
	secrets := []string{
		".ssh/id_ed25519", ".aws/credentials", ".netrc", ".bash_history", ".claude/history.jsonl", ".claude/.credentials.json", ".local/share/opencode/auth.json",
		".config/git/credentials", ".config/gh/hosts.yml", ".mozilla/profile", ".bridge/token", ".bridge/jobs/claude-job-2/spec.json", "project/main.go",
	}
	for _, name := range secrets {
		write(t, filepath.Join(home, name))
	}
	tests := []struct {
		name      string
		path      string // of the environment, ~ is the home
		command   string
		bridge    string
		variables []string
		want      string // what the job reads, besides
	}{
		{name: "as usual", path: "~/.local/bin:/usr/bin", command: "~/.local/bin/claude", bridge: "~/.local/bin/bridge", want: "~/.local/bin"},
		{name: "a program in the home folder", path: "/usr/bin", command: "~/claude", bridge: "~/bridge", want: "~/claude ~/bridge"},
		{name: "the home folder on the PATH", path: "~:~/bin", command: "~/bin/claude", want: "~/bin"},
		{name: "a folder above on the PATH", path: filepath.Dir(home) + ":/", command: "~/bin/claude"},
		{name: "a link to the home folder on the PATH", path: "~/tools/itself", command: "~/bin/claude"},
		{name: "the folder of settings on the PATH", path: "~/.config:~/.local:~/.local/share", command: "~/bin/claude"},
		{name: "a program beside keys", path: "/usr/bin", command: "~/.ssh/claude", want: "~/.ssh/claude"},
		{name: "node in the home folder", path: "~/bin", command: "~/bin/claude", want: "~/bin ~/lib"},
		{name: "node in .local", path: "~/.local/bin", command: "~/.local/bin/claude", want: "~/.local/bin ~/.local/lib"},
		{name: "an agent's own release", path: "/usr/bin", command: "~/.claude/local/claude", want: "~/.claude/local"},
		{name: "Bridge beside its home", path: "/usr/bin", command: "~/bin/claude", bridge: "~/.bridge/bridge", want: "~/.bridge/bridge"},
		{name: "certificates in the home folder", command: "~/bin/claude", variables: []string{"SSL_CERT_DIR=~", "NODE_EXTRA_CA_CERTS=~/ca.pem"}, want: "~/ca.pem"},
		{name: "the folder of temporary files on the PATH", path: "/tmp:/var/tmp", command: "~/bin/claude"},
		{name: "settings elsewhere", command: "~/bin/claude", variables: []string{"XDG_CONFIG_HOME=~/settings"}, want: "~/settings/git/config ~/settings/git/ignore"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := strings.NewReplacer("~", home).Replace
			for _, program := range []string{tt.command, tt.bridge, "~/bin/node", "~/.local/bin/node"} {
				write(t, at(program))
			}
			_ = os.MkdirAll(filepath.Join(home, "tools"), 0o700)
			if err := os.Symlink(home, filepath.Join(home, "tools", "itself")); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
			env := Environ{}
			for _, pair := range append(tt.variables, "HOME=~", "PATH="+tt.path) {
				env.set(at(pair))
			}
			spec := job.Spec{
				Kind: bridge.Claude, Command: []string{at(tt.command)}, Bridge: job.MCPServer{Command: at(tt.bridge)},
				StateFolder: filepath.Join(home, ".bridge", "jobs", "claude-job-1"),
			}
			read := Programs(spec, env)
			for _, want := range strings.Fields(at(tt.want)) {
				if !slices.ContainsFunc(read, func(path string) bool { return holds(path, want) }) {
					t.Errorf("the job does not read %s: %q", want, read)
				}
			}
			for i, path := range read {
				for _, other := range read[i+1:] {
					if strings.HasPrefix(other, path+"/") || other == path {
						t.Errorf("%s lies in %s, which is read", other, path)
					}
				}
			}
			for _, name := range secrets {
				for _, path := range read {
					if holds(path, filepath.Join(home, name)) {
						t.Errorf("with %s the job reads %s", path, name)
					}
				}
			}
		})
	}
}

// holds reports whether a path is another one or lies above it, with all links resolved.
func holds(path, other string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	relative, err := filepath.Rel(path, other)
	return err == nil && filepath.IsLocal(relative)
}

// write makes an empty program, with the folders above it.
func write(t *testing.T, path string) {
	t.Helper()
	if path == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
}
