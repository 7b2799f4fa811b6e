package run

import (
	"os"
	"testing"
	"time"
)

// What a CLI wrote last is read also by who is busy with an earlier line until long after
// its end; one of its children that writes on and on keeps nobody.
func TestTheLastLinesAreReadHoweverLate(t *testing.T) {
	for name, tt := range map[string]struct {
		script      string
		least, most int // lines that are read
		lastWord    string
	}{
		"all has ended":          {`echo one; read x; echo two >&2; seq 1 5000; echo two`, 5002, 5002, "two"},
		"a child keeps the pipe": {`echo one; read x; echo two; sleep 1000 &`, 2, 2, "two"},
		"a child writes on":      {`echo one; read x; echo two; (trap "" PIPE; while echo two; do :; done) &`, 2, 2 + 65536/4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := start(Command{Argv: []string{"sh", "-c", tt.script}, Env: Environ{"PATH": os.Getenv("PATH")}}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer killGroup(p.cmd.Process) //nolint:errcheck // it may be at its end
			count, last := 0, ""
			ReadLines(p.output(), MaxLine, func(line Line) {
				if count++; count == 1 {
					if err := p.Send(t.Context(), []byte("go on")); err != nil {
						t.Error(err)
					}
					<-p.Ended()
					<-time.After(2 * drainTime) // busy for longer than a last word is waited for
				}
				last = string(line.Text)
			})
			if count < tt.least || count > tt.most || tt.lastWord != "" && last != tt.lastWord {
				t.Errorf("%d lines were read, the last %q", count, last)
			}
		})
	}
}
