//go:build !windows

package config

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/core/bridge"
)

// nobody is a user that owns nothing.
const nobody = 65534

func at(t *testing.T, dir string) Home {
	t.Helper()
	home, err := ResolveHome(dir, variables())
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// shortDir is a folder whose path leaves room for a Unix socket, wherever the
// temporary folder is.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bridge-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestEnsureMakesThePrivateHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := at(t, dir).Ensure(); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, dir).Perm(); got != 0o700 {
		t.Errorf("mode = %o, want 700", got)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := at(t, dir).Ensure(); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, dir).Perm(); got != 0o700 {
		t.Errorf("mode of an opened-up home = %o, want 700", got)
	}
}

func TestDOC_07_TheModeOfAFolderWithOtherFilesStays(t *testing.T) {
	for name, c := range map[string]struct {
		holds  []string
		before os.FileMode
		after  os.FileMode
		code   bridge.Code
	}{
		"no home":                       {[]string{"notes.txt"}, 0o755, 0o755, bridge.Invalid},
		"a home":                        {[]string{"bridge.db"}, 0o755, 0o700, ""},
		"a home with a note":            {[]string{"bridge.db", "notes.txt"}, 0o755, 0o755, ""},
		"one that all can write to":     {[]string{"bridge.db", "notes.txt"}, 0o777, 0o777, bridge.Denied},
		"empty":                         {nil, 0o755, 0o700, ""},
		"a volume":                      {[]string{"lost+found/"}, 0o755, 0o700, ""},
		"a home, a note, closed before": {[]string{"bridge.db", "notes.txt"}, 0o700, 0o700, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fill(t, c.holds...)
			if err := os.Chmod(dir, c.before); err != nil {
				t.Fatal(err)
			}
			err := at(t, dir).Ensure()
			if got := mode(t, dir).Perm(); got != c.after || bridge.CodeOf(err) != c.code && err != nil || c.code != "" && err == nil {
				t.Errorf("mode %o, want %o; error %v, want %q", got, c.after, err, c.code)
			}
		})
	}
}

func TestEnsureRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := mode(t, path)
	err := at(t, path).Ensure()
	if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), path+" is a file") {
		t.Errorf("Ensure = %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" || mode(t, path) != before {
		t.Errorf("the file was changed: %q, %v, %v", data, mode(t, path), err)
	}
}

func TestEnsureRefusesTheHomeOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	err := at(t, dir).Ensure()
	if bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "(uid 65534), not to you") {
		t.Errorf("Ensure = %v, want a refusal that names the owner", err)
	}
	if got := mode(t, dir).Perm(); got != 0o755 {
		t.Errorf("the mode was changed to %o", got)
	}
}

// TestEnsureRefusesAReadOnlyHome runs itself as an ordinary user, since nothing
// is read-only for root.
func TestEnsureRefusesAReadOnlyHome(t *testing.T) {
	if dir := os.Getenv("BRIDGE_TEST_READONLY_HOME"); dir != "" {
		err := at(t, dir).Ensure()
		if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), dir+" is not writable") {
			t.Errorf("Ensure = %v", err)
		}
		return
	}
	root := shortDir(t) // t.TempDir is closed to other users
	dir, program := filepath.Join(root, "home"), filepath.Join(root, "test")
	copyProgram(t, program)
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestEnsureRefusesAReadOnlyHome$")
	cmd.Env = append(os.Environ(), "BRIDGE_TEST_READONLY_HOME="+dir)
	cmd.Dir = root
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(root, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if output, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(output), "PASS") {
		t.Errorf("as an ordinary user: %v\n%s", err, output)
	}
	if got := mode(t, dir).Perm(); got != 0o500 {
		t.Errorf("the mode was changed to %o", got)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(file, from); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Chmod(0o755), file.Close()); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func TestSocketOfALongHomeIsShortAndPrivate(t *testing.T) {
	short, long := at(t, shortDir(t)), at(t, filepath.Join(t.TempDir(), strings.Repeat("long-", 30)))
	if got := short.Socket(); got != filepath.Join(short.Dir(), "bridge.sock") {
		t.Errorf("Socket = %q, want it inside the home", got)
	}
	if err := long.Ensure(); err != nil {
		t.Fatal(err)
	}
	socket := long.Socket()
	if len(socket) > maxSocketPath || mode(t, filepath.Dir(socket)).Perm() != 0o700 {
		t.Errorf("socket %q in a folder of mode %v", socket, mode(t, filepath.Dir(socket)))
	}
	if other := at(t, filepath.Join(t.TempDir(), strings.Repeat("other-", 30))); other.Socket() == socket {
		t.Error("two homes share a socket")
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatalf("the socket is not usable: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

// TestOneHomeHasOneSocket: a home reached through a symlink is the same home.
func TestOneHomeHasOneSocket(t *testing.T) {
	home := newHome(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home.Dir(), link); err != nil {
		t.Fatal(err)
	}
	if got := at(t, link).Socket(); got != home.Socket() {
		t.Errorf("socket through a link = %q, want %q", got, home.Socket())
	}
}

func TestMSG_02_CheckSocketRefusesAFolderOfOthers(t *testing.T) {
	root := shortDir(t)
	home := at(t, root)
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := home.CheckSocket(); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("CheckSocket of a folder that all may write to = %v, want Denied", err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	if err := home.CheckSocket(); err != nil {
		t.Errorf("CheckSocket of an ensured home = %v", err)
	}
	if err := at(t, filepath.Join(root, "missing")).CheckSocket(); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("CheckSocket of a missing home = %v, want NotFound", err)
	}
}

// What a person copies into a shell is what was meant, whatever the home is called.
func TestACommandLineIsReadBackByAShell(t *testing.T) {
	for _, name := range []string{"plain", "two words", "$HOME", "`id`", `"`, "it's", "a;b", "a&b", "a(b)", `back\slash`, "*", "~", "#", "ü"} {
		home := at(t, filepath.Join(t.TempDir(), name))
		line := home.CommandLine("printf", `%s\n`, name)
		got, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
		if want := name + "\n--home\n" + home.Dir() + "\n"; err != nil || string(got) != want {
			t.Errorf("%s is read back as %q (%v), want %q", line, got, err, want)
		}
	}
}
