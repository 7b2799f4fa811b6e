package remote

import (
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

// TestSEC_12_AllowanceBoundsWhatAPCBrings counts by a clock that is moved.
func TestSEC_12_AllowanceBoundsWhatAPCBrings(t *testing.T) {
	limit := Limit{Burst: 10, PerMinute: 60, What: "decisions"}
	start := time.Unix(1_000_000, 0)
	var a Allowance
	for _, step := range []struct {
		after time.Duration
		take  int
		left  int           // before it is taken
		wait  time.Duration // for five more, after it
	}{
		{0, 4, 10, 0},
		{0, 6, 6, 5 * time.Second},
		{0, 0, 0, 5 * time.Second},
		{3 * time.Second, 3, 3, 5 * time.Second},
		{time.Second, 25, 1, 29 * time.Second}, // what came at once may be more
		{10 * time.Second, 0, 0, 19 * time.Second},
		{time.Hour, 0, 10, 0},
		{-2 * time.Hour, 10, 10, 5 * time.Second}, // the clock was put back
		{time.Minute, 0, 10, 0},
	} {
		start = start.Add(step.after)
		if left := a.Left(limit, start); left != step.left {
			t.Errorf("after %v: %d left, want %d", step.after, left, step.left)
		}
		a.Take(step.take)
		if wait := a.Wait(limit, 5, start); wait.Round(time.Millisecond) != step.wait {
			t.Errorf("after %v and %d more: %v until five, want %v", step.after, step.take, wait, step.wait)
		}
	}
	if err := limit.Error(); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("refused by %v", err)
	}
}
