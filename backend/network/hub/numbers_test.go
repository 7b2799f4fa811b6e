package hub

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Numbers grow beyond a restart, whatever the clock says, and are put aside ten minutes
// at a time.
func TestHUB_02_NumbersGrowBeyondRestarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said.json")
	at := time.Unix(1_800_000_000, 0)
	open := func() *numbers { return openNumbers(file, slog.New(slog.DiscardHandler)) }
	n, last, writes, kept := open(), int64(0), 0, ""
	for step, tt := range []struct {
		now     time.Time
		restart bool
		passed  int64
		writes  int // so far
	}{
		{now: at, writes: 1},
		{now: at, writes: 1},                      // its clock stands still
		{now: at.Add(-24 * time.Hour), writes: 1}, // and is put back
		{now: at.Add(-24 * time.Hour), restart: true, writes: 2},
		{now: at.Add(-24 * time.Hour), restart: true, writes: 3},
		{now: at.Add(time.Hour), writes: 4},
		{now: at.Add(time.Hour + 9*time.Minute), writes: 4},
		{now: at.Add(time.Hour + 11*time.Minute), writes: 5},
		{now: at, passed: at.Add(48 * time.Hour).UnixNano(), writes: 6},
	} {
		if tt.restart {
			n = open()
		}
		n.skipTo(tt.passed)
		number, err := n.next(tt.now)
		if err != nil || number <= last || number <= tt.passed {
			t.Errorf("step %d: number %d behind %d, %v", step, number, last, err)
		}
		last = number
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != kept {
			writes, kept = writes+1, string(raw)
		}
		if writes != tt.writes {
			t.Errorf("step %d: written %d times, want %d", step, writes, tt.writes)
		}
	}
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if number, err := open().next(at); err != nil || number != at.UnixNano() {
		t.Errorf("beside a damaged file: %d, %v", number, err)
	}
	n.file = filepath.Join(file, "not a folder")
	if _, err := n.next(at.Add(9000 * time.Hour)); err == nil {
		t.Error("what cannot be put aside is said all the same")
	}
}
