package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// ownersFolders is a home folder of an owner with Bridge's home in it, and what Reserved
// knows of both.
func ownersFolders(t *testing.T, env map[string]string) (user string, check func(string) error) {
	t.Helper()
	user, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	user = filepath.Join(user, "users", "anna")
	getenv := func(name string) string {
		if name == userHomeVariable {
			return user
		}
		return env[name]
	}
	for _, folder := range []string{
		".ssh", ".claude/projects", ".codex", ".config/opencode", ".config/app", ".config/autostart", ".local/share/opencode", ".local/bin", "bin", "src/project", "src/bin",
		".bridge/worktrees/claude-job-0a1b2c3d/src", ".bridge/jobs",
	} {
		if err := os.MkdirAll(filepath.Join(user, filepath.FromSlash(folder)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	home, err := ResolveHome("", getenv)
	if err != nil {
		t.Fatal(err)
	}
	return user, ReservedFolders(home, getenv).Check
}

func TestSEC_09_FoldersInWhichNoJobMayWrite(t *testing.T) {
	other := t.TempDir()
	user, check := ownersFolders(t, map[string]string{"CODEX_HOME": filepath.Join(other, "codex")})
	link := func(name, to string) string {
		t.Helper()
		name = filepath.Join(other, name)
		if err := os.Symlink(to, name); err != nil {
			t.Skip("no links on this system:", err)
		}
		return name
	}
	at := func(name string) string { return filepath.Join(user, filepath.FromSlash(name)) }
	elsewhere := t.TempDir()
	if err := os.Symlink(filepath.Join(elsewhere, "real", "aws"), at(".aws")); err != nil {
		t.Skip("no links on this system:", err)
	}
	if err := os.MkdirAll(filepath.Join(elsewhere, "real", "aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ folder, says string }{
		"none":                         {"", "needs a folder"},
		"a project":                    {at("src/project"), ""},
		"a bin of a project":           {at("src/bin"), ""},
		"settings of a program":        {at(".config/app"), ""},
		"one that is not there":        {at("src/new"), ""},
		"a job's worktree":             {at(".bridge/worktrees/claude-job-0a1b2c3d"), ""},
		"a folder of that":             {at(".bridge/worktrees/claude-job-0a1b2c3d/src"), ""},
		"all worktrees":                {at(".bridge/worktrees"), "which holds what Bridge keeps"},
		"Bridge's home":                {at(".bridge"), "holds what Bridge keeps"},
		"within it":                    {at(".bridge/jobs"), "lies in " + at(".bridge")},
		"the home folder":              {user, "is your home folder"},
		"around it":                    {filepath.Dir(user), "contains "},
		"the top":                      {filepath.VolumeName(user) + string(filepath.Separator), "belongs to the system"},
		"settings":                     {at(".config"), "holds the settings of your programs"},
		"around keys of an agent":      {at(".local/share"), "contains " + at(".local/share/opencode")},
		"an agent's":                   {at(".claude"), "the state of an agent"},
		"within an agent's":            {at(".claude/projects"), "the state of an agent"},
		"an agent's that is not there": {filepath.Join(other, "codex", "x"), "the state of an agent"},
		"keys":                         {at(".ssh"), "keys and passwords"},
		"keys that are not there":      {at(".gnupg"), "keys and passwords"},
		"autostart":                    {at(".config/autostart"), "start by themselves"},
		"user units, not there":        {at(".config/systemd/user"), "start by themselves"},
		"programs":                     {at(".local/bin"), "start by themselves"},
		"more programs":                {at("bin"), "start by themselves"},
		"by ..":                        {at("src/project/../../.ssh"), "keys and passwords"},
		"by a link":                    {link("keys", at(".ssh")), "keys and passwords"},
		"by a link to the home":        {link("me", user), "is your home folder"},
		"by a link to its parent":      {link("all", filepath.Dir(user)), "contains "},
		"below a link to the home":     {filepath.Join(link("me2", user), ".ssh"), "keys and passwords"},
		"by a link to a link":          {link("keys2", filepath.Join(other, "keys")), "keys and passwords"},
		"by a link that leads nowhere": {link("nowhere", filepath.Join(other, "gone")), "cannot see where it leads"},
		"by a link to a project":       {link("project", at("src/project")), ""},
		"by a link into an agent's":    {link("projects", at(".claude/projects")), "the state of an agent"},
		"where keys really are":        {filepath.Join(elsewhere, "real", "aws"), "keys and passwords"},
		"around where keys really are": {filepath.Join(elsewhere, "real"), "contains " + at(".aws")},
	} {
		err := check(tt.folder)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %s is refused: %v", name, tt.folder, err)
		case tt.says != "" && (bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.folder)):
			t.Errorf("%s: %s: %v, want a sentence with %q", name, tt.folder, err, tt.says)
		}
	}
}

func TestSEC_09_FoldersOfTheSystem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("these are other folders there")
	}
	_, check := ownersFolders(t, nil)
	for _, folder := range []string{"/", "/etc", "/etc/ssl", "/usr", "/usr/local", "/bin", "/var"} {
		if err := check(folder); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s: %v, want Denied", folder, err)
		}
	}
	if err := check("/srv/project"); err != nil {
		t.Error(err)
	}
}

// TestSEC_09_OtherLetters: where a disk does not tell letter cases apart, the folder itself
// is compared; where it does, another name is another folder.
func TestSEC_09_OtherLetters(t *testing.T) {
	user, check := ownersFolders(t, nil)
	other := filepath.Join(user, ".SSH")
	_, err := os.Stat(other)
	same := err == nil
	if !same {
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := check(other); (got != nil) != same {
		t.Errorf("one folder: %t, and it is answered with %v", same, got)
	}
}
