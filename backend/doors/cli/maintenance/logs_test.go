package maintenance

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestDOC_12_TheLastLinesOfTheLog(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\n": "a\n", "a\nb\nc\n": "b\nc\n", "a\nb\nc": "b\nc"} {
		if got := lastLines([]byte(text), 2); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A line is shown when it is whole, and a log that was rotated is read from its beginning.
func TestDOC_12_TheLogIsFollowedOverItsRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntw")
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- followLog(ctx, file, int64(len("one\n")), writer) }()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	write("one\ntwo\n")
	read("two\n")
	write("new\n")
	read("new\n")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
