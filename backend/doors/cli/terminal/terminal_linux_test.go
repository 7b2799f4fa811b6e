package terminal

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

const hostile = "\x1b[2K\u009b\u202e\U000e0041\xff"

// shown returns what a terminal is given.
func shown(t *testing.T, write func(file *os.File)) string {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	write(slave)
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(master) // its end is an error on Linux
	return string(said)
}

func TestSEC_06_ATerminalIsGivenWhatIsVisible(t *testing.T) {
	got := shown(t, func(to *os.File) {
		w := Writer(to)
		if n, err := io.WriteString(w, "a"+hostile+"\n"); n != len(hostile)+2 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		if again := Writer(w); again != w {
			t.Error("a writer is wrapped twice")
		}
		file, is := File(w)
		if !is {
			t.Fatal("there is no terminal behind it")
		}
		_, _ = io.WriteString(file, "\r\x1b[K") // of Bridge's own
	})
	if want := `a\x1b[2K\x9b⟨U+202E⟩⟨U+E0041⟩\xff` + "\r\n\r\x1b[K"; got != want {
		t.Errorf("the terminal is given %q, want %q", got, want)
	}
}

func TestSEC_06_JSONOnATerminalMeansTheSame(t *testing.T) {
	said := strings.TrimSuffix(hostile, "\xff") + "\"\\ü👨\u200d👩 \u2028"
	got := shown(t, func(file *os.File) {
		if err := json.NewEncoder(JSON(Writer(file))).Encode(said); err != nil {
			t.Error(err)
		}
	})
	var back string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back != said {
		t.Errorf("%q means %q, %v", got, back, err)
	}
	if strings.ContainsAny(got, "\x1b\u009b\u202e\U000e0041\u2028") {
		t.Errorf("it is written as %q", got)
	}
}

func TestSEC_06_FilesAndPipesGetEveryByte(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if w := Writer(write); w != io.Writer(write) || JSON(w) != io.Writer(write) {
		t.Error("a pipe is changed")
	}
	_ = write.Close()
	var b bytes.Buffer
	if w := Writer(&b); w != io.Writer(&b) {
		t.Error("a buffer is changed")
	}
	if _, is := File(&b); is {
		t.Error("a buffer is a terminal")
	}
}
