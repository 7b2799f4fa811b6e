package dashboard

import (
	"errors"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
)

func TestDSK_06_TheLastHoursCount(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	unreadable := errors.New("unreadable")
	for _, tt := range []struct {
		name          string
		before, after int // what the store holds at the first and at the second look
		later         time.Duration
		want          int
	}{
		{"few are counted each time", 3, 4, 0, 4},
		{"a thousand, too", 1000, 1001, time.Millisecond, 1001},
		{"many stand for a moment", 5000, 5001, 4999 * time.Millisecond, 5000},
		{"and no longer", 5000, 5001, 5000 * time.Millisecond, 5001},
		{"a clock that was set back", 5000, 5001, -time.Millisecond, 5001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var hour hourCount
			look := func(at time.Time, holds int) dto.LastHour {
				t.Helper()
				got, err := hour.at(at, func(since int64) (int, error) {
					if want := at.Add(-time.Hour).UnixMilli(); since != want {
						t.Errorf("counted since %d, want %d", since, want)
					}
					return holds, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			if got := look(start, tt.before); got.Messages != bridge.Count(tt.before) || got.At != start.UnixMilli() {
				t.Errorf("first: %+v", got)
			}
			got := look(start.Add(tt.later), tt.after)
			if got.Messages != bridge.Count(tt.want) {
				t.Errorf("second: %+v, want %d messages", got, tt.want)
			}
			if stood := got.At == start.UnixMilli(); stood != (tt.want == tt.before) && tt.later != 0 {
				t.Errorf("second: %+v does not say when it was counted", got)
			}
		})
	}
	t.Run("what cannot be read is said", func(t *testing.T) {
		var hour hourCount
		if _, err := hour.at(start, func(int64) (int, error) { return 0, unreadable }); !errors.Is(err, unreadable) {
			t.Errorf("error %v", err)
		}
	})
}
