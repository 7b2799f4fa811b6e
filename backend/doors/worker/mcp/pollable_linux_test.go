package mcp

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// blocking returns files for descriptors as a parent hands them on.
func blocking(t *testing.T, descriptors [2]int, err error) (*os.File, *os.File) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	first, second := os.NewFile(uintptr(descriptors[0]), "first"), os.NewFile(uintptr(descriptors[1]), "second")
	t.Cleanup(func() { first.Close(); second.Close() })
	return first, second
}

func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	var descriptors [2]int
	return blocking(t, descriptors, unix.Pipe(descriptors[:]))
}

func waitsWithoutThread(t *testing.T, input io.Reader) bool {
	t.Helper()
	file, ok := input.(*os.File)
	return ok && file.SetReadDeadline(time.Time{}) == nil
}

func isBlocking(t *testing.T, file *os.File) bool {
	t.Helper()
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK == 0
}

func TestTheInputOfASessionIsPolled(t *testing.T) {
	for _, kind := range []struct {
		name string
		make func(*testing.T) (input, host *os.File)
	}{
		{"a pipe", pipe},
		{"a socket", func(t *testing.T) (*os.File, *os.File) {
			t.Helper()
			descriptors, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return blocking(t, descriptors, err)
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			input, host := kind.make(t)
			_, output := pipe(t)
			from, restore := pollable(input, output)
			if !waitsWithoutThread(t, from) {
				t.Error("whoever reads it waits in a system call")
			}
			read := make(chan string)
			go func() {
				text, err := io.ReadAll(from)
				if err != nil {
					t.Error(err)
				}
				read <- string(text)
			}()
			if _, err := host.WriteString("one line\n"); err != nil {
				t.Fatal(err)
			}
			if err := host.Close(); err != nil {
				t.Fatal(err)
			}
			if got := <-read; got != "one line\n" {
				t.Errorf("it brought %q", got)
			}
			restore()
			if !isBlocking(t, input) {
				t.Error("it is left to others in another mode")
			}
		})
	}
}

func TestAnInputThatIsNoSessionsStaysAsItIs(t *testing.T) {
	stays := func(name string, input *os.File, outputs ...io.Writer) {
		t.Helper()
		from, restore := pollable(input, outputs...)
		restore()
		if from != io.Reader(input) || !isBlocking(t, input) {
			t.Errorf("%s was changed", name)
		}
	}
	_, output := pipe(t)
	socket, _ := func() (*os.File, *os.File) {
		descriptors, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return blocking(t, descriptors, err)
	}()
	stays("what is written to, too,", socket, output, socket)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stays("a file", file, output)
	polled, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer polled.Close()
	from, restore := pollable(polled, output)
	restore()
	if from != io.Reader(polled) || !waitsWithoutThread(t, polled) {
		t.Error("what is polled already was changed")
	}
}
