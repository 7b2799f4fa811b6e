package connects_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"bridge/backend/platform/sandbox"
	"bridge/backend/platform/sandbox/connects"
)

func init() {
	attempts["terminal"] = func(path string) error { return openAndWrite(path, unix.O_RDWR|unix.O_NOCTTY) }
	attempts["open"] = func(path string) error { return openAndWrite(path, unix.O_RDWR) }
	attempts["create"] = func(path string) error {
		return openAndWrite(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	}
	attempts["empty"] = func(path string) error { return openAndWrite(path, unix.O_RDWR|unix.O_TRUNC) }
	attempts["append"] = func(path string) error { return openAndWrite(path, unix.O_WRONLY|unix.O_APPEND) }
	attempts["remove"] = unix.Unlink
	attempts["link"] = func(both string) error {
		from, to, _ := strings.Cut(both, ",")
		return unix.Link(from, to)
	}
	attempts["own-terminal"] = func(string) error { return ownTerminal() }
	attempts["peer"] = func(string) error { return ownPeer() }
	attempts["peer-of"] = func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		_, _, number := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
		if number == 0 {
			return nil
		}
		return number
	}
}

func openAndWrite(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return err
}

// firstOfTerminal makes a terminal and returns its first end and its name.
func firstOfTerminal() (int, string, error) {
	first, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, "", err
	}
	if err := unix.IoctlSetPointerInt(first, unix.TIOCSPTLCK, 0); err != nil {
		return 0, "", err
	}
	number, err := unix.IoctlGetInt(first, unix.TIOCGPTN)
	return first, "/dev/pts/" + strconv.Itoa(number), err
}

// ownTerminal opens a terminal of its own by its name.
func ownTerminal() error {
	_, name, err := firstOfTerminal()
	if err != nil {
		return err
	}
	return openAndWrite(name, unix.O_RDWR|unix.O_NOCTTY)
}

// ownPeer opens it by its first end.
func ownPeer() error {
	first, _, err := firstOfTerminal()
	if err != nil {
		return err
	}
	second, _, number := unix.Syscall(unix.SYS_IOCTL, uintptr(first), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if number != 0 {
		return number
	}
	if _, err = unix.IoctlGetTermios(int(second), unix.TCGETS); err != nil {
		return err
	}
	_, err = unix.Write(int(second), []byte("x"))
	return err
}

// TestRWM_22_AJobHasTerminalsAndSharedMemoryOfItsOwnAlone tries the devices that programs
// share: a terminal and shared memory of another program of the same user stay closed.
func TestRWM_22_AJobHasTerminalsAndSharedMemoryOfItsOwnAlone(t *testing.T) {
	needSandbox(t)
	first, second, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	defer second.Close()
	inside, shared, outside := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	name := "bridge-test-" + rand.Text()
	others := "/dev/shm/" + name
	for _, path := range []string{others, outside} {
		if err := os.WriteFile(path, []byte("of another program"), 0o600); err != nil {
			t.Skipf("SKIPPED, no shared memory here: %v", err)
		}
	}
	defer os.Remove(others)
	if err := os.Symlink(outside, filepath.Join(shared, "link")); err != nil {
		t.Fatal(err)
	}
	made := "/dev/shm/made-" + rand.Text()
	const denied, missing = "permission denied", "no such file or directory"
	cases := []struct{ word, want, without string }{ // without: where the rules give no devices
		{"own-terminal", "", denied},
		{"peer", "", denied},
		{"terminal=" + second.Name(), denied, denied},
		{"open=" + second.Name(), denied, denied},
		{"append=" + second.Name(), denied, denied},
		{"peer-of=" + second.Name(), denied, denied},
		{"create=" + made, "", denied},
		{"create=" + made, "file exists", denied},
		{"open=" + made, "", missing},
		{"link=" + made + "," + made + "-2", "", missing},
		{"open=" + made + "-2", "", missing},
		{"remove=" + made + "-2", "", missing},
		{"open=" + made + "-2", missing, missing},
		{"open=" + others, missing, denied},
		{"empty=" + others, missing, denied},
		{"append=" + others, denied, denied},
		{"remove=" + others, missing, denied},
		{"link=" + others + "," + inside + "/stolen", "invalid cross-device link", "invalid cross-device link"},
		{"link=" + outside + ",/dev/shm/" + name + "-2", "invalid cross-device link", "invalid cross-device link"},
		{"open=/dev/shm/link", "too many levels of symbolic links", missing},
		{"open=/dev/shm/../../" + outside, denied, denied},
		{"create=/dev/shm/./" + name + "-3", denied, denied},
		{"open=" + inside + "/none", missing, missing},
		{"create=" + inside + "/file", "", ""},
		{"open=" + inside + "/file", "", ""},
		{"remove=" + inside + "/file", "", ""},
		{"open=" + outside, denied, denied},
		{"remove=" + outside, denied, denied},
	}
	for _, own := range []bool{true, false} {
		s := &supervised{folder: inside, rules: sandbox.Rules{OwnDevices: own}}
		if own {
			s.policy = connects.Policy{Shared: shared}
		}
		var words []string
		for _, c := range cases {
			words = append(words, c.word)
		}
		for i, text := range s.run(t, words...) {
			want := cases[i].want
			if !own {
				want = cases[i].without
			}
			if text != want {
				t.Errorf("own devices %t: %s: %q, want %q", own, cases[i].word, text, want)
			}
		}
	}
	for _, path := range []string{others, outside} {
		if data, err := os.ReadFile(path); err != nil || string(data) != "of another program" {
			t.Errorf("%s is %q, %v", path, data, err)
		}
	}
	if entries, _ := filepath.Glob(made + "*"); len(entries) > 0 {
		t.Errorf("the job has made %v", entries)
	}
	if data, err := os.ReadFile(filepath.Join(shared, filepath.Base(made))); err != nil || string(data) != "x" {
		t.Errorf("its shared memory is %q, %v", data, err)
	}
	waiting := []unix.PollFd{{Fd: int32(first.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(waiting, 0); n > 0 || err != nil {
		t.Errorf("the other terminal has received something, %v", err)
	}
}
