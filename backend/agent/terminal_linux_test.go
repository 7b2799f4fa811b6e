package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"

	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

func TestRWM_24_TheCodexesOfAFolder(t *testing.T) {
	folder, other, state, programs := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	link := filepath.Join(other, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"codex", "claude"} {
		if err := testkit.WriteProgram(filepath.Join(programs, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, program, dir, state string
		args                      []string
		want                      bool
	}{
		{"in the folder", "codex", folder, state, []string{"-c", "read line"}, true},
		{"by a link", "codex", link, state, []string{"-c", "read line"}, true},
		{"elsewhere", "codex", other, state, []string{"-c", "read line"}, false},
		{"with other state", "codex", folder, other, []string{"-c", "read line"}, false},
		{"another program", "claude", folder, state, []string{"-c", "read line"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs, tt.program), tt.args...)
			cmd.Dir, cmd.Env = tt.dir, append(os.Environ(), "CODEX_HOME="+tt.state)
			tty, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = tty.Close()
				_ = cmd.Process.Kill()
				_, _ = cmd.Process.Wait()
			}()
			found := CodexTerminals(folder, state)
			if got := len(found) == 1 && found[0].PID == cmd.Process.Pid; got != tt.want {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestRWM_24_TheFolderThatACodexIsGiven(t *testing.T) {
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"codex"}, "/a"},
		{[]string{"codex", "-C", "/b"}, "/b"},
		{[]string{"codex", "--cd=b"}, "/a/b"},
		{[]string{"codex", "resume", "--cd", "../c"}, "/c"},
		{[]string{"codex", "-C"}, "/a"},
	} {
		if got := folderOf("/a", tt.words); got != tt.want {
			t.Errorf("%q works in %s, want %s", tt.words, got, tt.want)
		}
	}
}

func TestRWM_24_WhichTerminalWasTypedInto(t *testing.T) {
	now := time.Now()
	at := func(seconds ...int) (all Terminals) {
		for i, ago := range seconds {
			all = append(all, proc.InTerminal{Named: proc.Named{Name: string(rune('a' + i)), PID: i + 2}, Read: now.Add(-time.Duration(ago) * time.Second)})
		}
		return all
	}
	for _, tt := range []struct {
		all  Terminals
		want string
	}{
		{at(0), "a"},
		{at(12), "a"},
		{at(13), ""},
		{at(0, 8), "a"},
		{at(8, 0), "b"},
		{at(0, 7), ""},
		{at(7, 0), ""},
		{at(0, 100, 3), ""},
		{nil, ""},
		{Terminals{{Named: proc.Named{Name: "unknown"}}}, ""},
	} {
		if got, ok := tt.all.TypedInto(now); got.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("%+v: %q, want %q", tt.all, got.Name, tt.want)
		}
	}
}
