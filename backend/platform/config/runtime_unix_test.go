//go:build !windows

package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// longHome is a home whose path is too long for a socket; its sockets' links go with the test.
func longHome(t *testing.T) Home {
	t.Helper()
	home := at(t, filepath.Join(t.TempDir(), strings.Repeat("long-", 30)))
	t.Cleanup(func() {
		for _, name := range []string{"bridge", "window"} {
			_ = os.Remove(filepath.Join(runtimeDir(os.Geteuid()), home.Key()+"-"+name+".sock")) // it need not be there
		}
	})
	return home
}

func listen(t *testing.T, socket string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it may be closed
	return listener
}

func TestSEC_13_TheSocketIsInTheUsersOwnFolder(t *testing.T) {
	private, open, file := shortDir(t), shortDir(t), filepath.Join(shortDir(t), "file")
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(shortDir(t), "link")
	if err := os.Symlink(private, link); err != nil {
		t.Fatal(err)
	}
	shared := runtimeDir(os.Geteuid())
	for name, tt := range map[string]struct{ dir, want string }{
		"private":      {private, filepath.Join(private, "bridge")},
		"not set":      {"", shared},
		"not absolute": {"run", shared},
		"not there":    {filepath.Join(private, "gone"), shared},
		"open":         {open, shared},
		"a file":       {file, shared},
		"a link":       {link, shared},
		"too long":     {longDir(t), shared},
	} {
		t.Setenv("XDG_RUNTIME_DIR", tt.dir)
		home := longHome(t)
		if got := filepath.Dir(home.Socket()); got != tt.want {
			t.Errorf("%s: the socket is in %s, want %s", name, got, tt.want)
		}
		if err := home.Ensure(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := home.CheckSocket(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if short := at(t, shortDir(t)); filepath.Dir(short.Socket()) != short.Dir() {
			t.Errorf("%s: the socket of a short home is %s", name, short.Socket())
		}
	}
}

// longDir is a private folder whose path is too long for a socket.
func longDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSEC_13_BothEndsFindTheSocket: a broker and a client need not have the same
// environment, and one of them may be older.
func TestSEC_13_BothEndsFindTheSocket(t *testing.T) {
	private := shortDir(t)
	for name, tt := range map[string]struct{ broker, client string }{
		"both have a folder": {private, private}, "the broker alone": {private, ""}, "the client alone": {"", private}, "neither": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := longHome(t)
			for range 2 { // also after one that left something
				t.Setenv("XDG_RUNTIME_DIR", tt.broker)
				if err := home.Ensure(); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(home.Socket()) // as ipc.Listen does
				listener := listen(t, home.Socket())
				t.Setenv("XDG_RUNTIME_DIR", tt.client)
				older := filepath.Join(runtimeDir(os.Geteuid()), home.Key()+"-bridge.sock")
				for who, socket := range map[string]string{"a client": home.Socket(), "an older client": older} {
					conn, err := net.Dial("unix", socket)
					if err != nil {
						t.Errorf("%s does not reach the broker: %v", who, err)
						continue
					}
					_ = conn.Close()
				}
				if err := home.CheckSocket(); err != nil {
					t.Errorf("a client: %v", err)
				}
				listener.(*net.UnixListener).SetUnlinkOnClose(false) // as where it is killed
				if err := listener.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSEC_13_ASocketFolderOfOthersIsRefused(t *testing.T) {
	private := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", private)
	if err := os.Mkdir(filepath.Join(private, "bridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(private, "bridge"), 0o777); err != nil {
		t.Fatal(err)
	}
	home := longHome(t)
	if err := home.Ensure(); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), filepath.Join(private, "bridge")) {
		t.Errorf("Ensure = %v, want Denied and the folder", err)
	}
}
