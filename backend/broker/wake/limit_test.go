package wake

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQUI_03_WakesWithinAMinuteAreOneAndAnHourHasSoMany(t *testing.T) {
	minute, hour := time.Minute.Milliseconds(), time.Hour.Milliseconds()
	var l Limit
	for i, tt := range []struct {
		at     int64
		allows bool
		freeAt int64
	}{
		{0, true, 0},
		{minute - 1, true, minute - 1}, // with the first
		{minute, true, minute},
		{5 * minute, false, hour},
		{hour - 1, false, hour},
		{hour, true, hour},
		{hour + 2*minute, true, hour + 2*minute},
		{hour + 4*minute, false, 2 * hour},
		{-hour, true, -hour}, // the clock was set back
	} {
		if got, free := l.Allows(tt.at, 2), l.FreeAt(tt.at, 2); got != tt.allows || free != tt.freeAt {
			t.Errorf("step %d: allows %t, free at %d; want %t, %d", i, got, free, tt.allows, tt.freeAt)
		}
		if tt.allows {
			l.Woken(tt.at)
		}
	}
	for range 3 {
		if !l.Allows(0, 0) {
			t.Error("without a limit it refuses")
		}
	}
}

// Whatever arrives, an hour never has more wakes than allowed, and a refused wake is allowed
// when FreeAt says so.
func TestQUI_03_AnHourNeverHasMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		var l Limit
		var began []int64
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			now += rapid.Int64Range(0, 10*time.Minute.Milliseconds()).Draw(t, "pause")
			if !l.Allows(now, most) {
				later := l
				later.wakes = append([]int64(nil), l.wakes...)
				if free := later.FreeAt(now, most); free <= now || !later.Allows(free, most) {
					t.Fatalf("at %d it says %d", now, free)
				}
				continue
			}
			if len(began) == 0 || now-began[len(began)-1] >= time.Minute.Milliseconds() {
				began = append(began, now)
			}
			l.Woken(now)
		}
		for i := range began {
			if i >= most && began[i]-began[i-most] < time.Hour.Milliseconds() {
				t.Fatalf("%d wakes within an hour: %v", most+1, began)
			}
		}
	})
}
