//go:build !windows

package shellenv

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// starter is what a session of a project gives to whatever it starts.
var starter = []string{
	"HOME=/home/ann", "USER=ann", "LOGNAME=ann", "SHELL=/bin/zsh", "LANG=C.UTF-8", "LC_TIME=de_DE.UTF-8", "TZ=UTC", "TERM=xterm", "XDG_RUNTIME_DIR=/run/user/1000",
	"DISPLAY=:0", "SSH_AUTH_SOCK=/run/agent", "DATABASE_URL=postgres://made-up", "GIT_DIR=/home/ann/a/.git", "GIT_CONFIG_COUNT=1", "AWS_PROFILE=prod",
	"VIRTUAL_ENV=/home/ann/a/.venv", "LD_LIBRARY_PATH=/home/ann/a/lib", "TMPDIR=/tmp/of-a-session", "CODEX_HOME=/home/ann/codex", "XDG_CONFIG_HOME=/home/ann/config",
	"BRIDGE_PORT=4", "BRIDGE_NAME=of-a-session", "CLAUDECODE=1", "SSL_CERT_FILE=/etc/ca.pem", "GODEBUG=x=1", "PATH=/home/ann/a/.venv/bin:relative:",
}

func names(environ []string) []string {
	var all []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestRWM_06_OnlyTheSessionOfTheUserIsKept(t *testing.T) {
	ofTheSession := []string{"DISPLAY", "HOME", "LANG", "LC_TIME", "LOGNAME", "PATH", "SHELL", "SSH_AUTH_SOCK", "TERM", "TZ", "USER", "XDG_RUNTIME_DIR"}
	system := path + strings.Join(systemPath(), ":")
	for name, tt := range map[string]struct {
		got  []string
		want []string
		path string
	}{
		"for a login shell": {clean(starter, nil), ofTheSession, system},
		"for a broker": {
			Broker(starter), append([]string{"BRIDGE_PORT", "CODEX_HOME", "GODEBUG", "SSL_CERT_FILE", "XDG_CONFIG_HOME"}, ofTheSession...), system,
		},
		"in a container": {
			clean(starter, []string{"PATH=/image/tools:/usr/bin", "HOME=/root", "IMAGE_KEY=k"}), append([]string{"IMAGE_KEY"}, ofTheSession...),
			path + strings.Join(unique(append([]string{"/image/tools", "/usr/bin"}, systemPath()...)), ":"),
		},
	} {
		slices.Sort(tt.want)
		if got := names(tt.got); !slices.Equal(got, tt.want) {
			t.Errorf("%s it has %q, want %q", name, got, tt.want)
		}
		if !slices.Contains(tt.got, tt.path) || !slices.Contains(tt.got, "HOME=/home/ann") {
			t.Errorf("%s it is %q, want %s and the user's home", name, tt.got, tt.path)
		}
	}
	if again := Clean(Broker(starter)); !slices.Equal(names(again), names(Clean(starter))) {
		t.Errorf("from what a broker keeps it is %q, from its starter's %q", names(again), names(Clean(starter)))
	}
}

// A service without a user's name in its environment has the names that login gives.
func TestRWM_06_TheUserIsNamed(t *testing.T) {
	environ := list(clean(nil, nil))
	for _, name := range []string{"HOME", "USER", "LOGNAME", "PATH"} {
		if environ.get(name) == "" {
			t.Errorf("there is no %s in %q", name, environ)
		}
	}
}

// Of the starter's PATH only folders of the machine are searched.
func TestRWM_06_NoFolderOfAProjectIsOnThePath(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"repo/.git", "repo/bin", "venv/bin", "app/node_modules/.bin"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "venv/pyvenv.cfg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{"repo/bin": true, "venv/bin": true, "app/node_modules/.bin": true, "app": false} {
		if got := isOfProject(filepath.Join(dir, folder)); got != want {
			t.Errorf("isOfProject(%s) = %t", folder, got)
		}
	}
	for name, tt := range map[string]struct {
		environ []string
		want    []string
	}{
		"of the machine":       {[]string{"PATH=/usr/lib:/etc"}, []string{"/usr/lib", "/etc"}},
		"not there":            {[]string{"PATH=/no/such/folder:/etc"}, []string{"/etc"}},
		"relative, empty":      {[]string{"PATH=.:bin::/etc"}, []string{"/etc"}},
		"of a home folder":     {[]string{"HOME=/usr", "PATH=/usr/lib:/etc"}, []string{"/etc"}},
		"temporary":            {[]string{"PATH=" + dir + ":/etc"}, []string{"/etc"}},
		"of its TMPDIR":        {[]string{"TMPDIR=/usr", "PATH=/usr/lib:/etc"}, []string{"/etc"}},
		"of an active project": {[]string{"VIRTUAL_ENV=/usr", "PATH=/usr/lib:/etc"}, []string{"/etc"}},
	} {
		home := list(tt.environ)
		if got := ofTheMachine(tt.environ, home.get("HOME")); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A checkout that belongs to root, as in a container, is a project, too.
func TestRWM_06_NoFolderOfRootsProjectIsOnThePath(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of root's")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/no/such/folder")
	shared := temporary
	temporary = nil
	t.Cleanup(func() { temporary = shared })
	for _, folder := range []string{"repo/.git", "repo/bin", "tools/bin", "open/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open/bin"), 0o777); err != nil { //nolint:gosec // which is what is refused
		t.Fatal(err)
	}
	tools := filepath.Join(dir, "tools/bin")
	environ := []string{"PATH=" + filepath.Join(dir, "repo/bin") + ":" + filepath.Join(dir, "open/bin") + ":" + tools}
	if got := ofTheMachine(environ, "/root"); !slices.Equal(got, []string{tools}) {
		t.Errorf("it is %q, want %q", got, tools)
	}
}

// terminal is one whose shell answers by turns.
func terminal(now *time.Time, answers ...[]string) (*Terminal, *int) {
	asked := 0
	return &Terminal{
		Ask: func() ([]string, error) {
			asked++
			if asked > len(answers) || answers[asked-1] == nil {
				return nil, errors.New("no answer")
			}
			return answers[asked-1], nil
		},
		Fallback: []string{"PATH=/system"}, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler),
	}, &asked
}

func TestRWM_07_TheShellIsAskedOnceAndAgainWhereAProgramIsMissing(t *testing.T) {
	now := time.Unix(1000, 0)
	item, asked := terminal(&now, []string{"PATH=/old"}, []string{"PATH=/old:/new"}, nil)
	step := func(name, path string, times int) {
		t.Helper()
		if got := Variable(item.Environ(), "PATH"); got != path || *asked != times {
			t.Errorf("%s: PATH %s, asked %d times; want %s, %d", name, got, *asked, path, times)
		}
	}
	step("first", "/old", 1)
	step("again", "/old", 1)
	if item.Refresh() {
		t.Error("within a minute it changed")
	}
	step("within a minute", "/old", 1)
	now = now.Add(askAgain)
	if !item.Refresh() {
		t.Error("after a minute it did not change")
	}
	step("after a minute", "/old:/new", 2)
	now = now.Add(askAgain)
	if item.Refresh() {
		t.Error("without an answer it changed")
	}
	step("without an answer", "/old:/new", 3)
}

func TestRWM_06_WithoutAnAnswerTheEnvironmentIsClean(t *testing.T) {
	now := time.Unix(1000, 0)
	item, asked := terminal(&now)
	var builder strings.Builder
	item.Log = slog.New(slog.NewTextHandler(&builder, nil))
	for range 2 {
		if got := item.Environ(); !slices.Equal(got, item.Fallback) || *asked != 1 {
			t.Errorf("it is %q, asked %d times", got, *asked)
		}
	}
	if !strings.Contains(builder.String(), "the login shell did not tell its environment") || !strings.Contains(builder.String(), "no answer") {
		t.Errorf("the log says %q", builder.String())
	}
}
