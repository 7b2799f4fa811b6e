package terminal

import (
	"testing"
	"time"
)

func TestDOC_10_TheTimeLeftIsToldOfTheStep(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &Progress{now: func() time.Time { return now }}
	for _, tt := range []struct {
		after     time.Duration
		done, all int64
		want      string
	}{
		{0, 0, 100, "  0% x"},
		{500 * time.Millisecond, 10, 100, " 10% x"},
		{1500 * time.Millisecond, 20, 100, " 20% x, 8s left"},
		{8 * time.Second, 100, 100, "100% x, 0s left"},
		{time.Second, 1, 50, "  2% x"},
		{2 * time.Second, 2, 50, "  4% x, 1m36s left"},
		{time.Second, 0, 1000, "  0% x"},
		{9 * time.Second, 9, 1000, "  0% x"}, // too little to tell
		{time.Second, 10, 1000, "  1% x, 16m30s left"},
	} {
		now = now.Add(tt.after)
		p.Tell("x", tt.done, tt.all)
		if got := p.line("x"); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.done, tt.all, got, tt.want)
		}
	}
}
