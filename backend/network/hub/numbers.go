package hub

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"bridge/backend/platform/disk"
)

const (
	// reserveAhead is for how long the numbers last that one write puts aside.
	reserveAhead    = 10 * time.Minute
	maxNumbersBytes = 1 << 10
)

// numbers gives a number to everything that this PC says: its clock in nanoseconds, and
// always more than any before, of earlier processes too. Whoever hears the PC passes over
// what has a smaller one, so a clock that was put back must not make this PC unheard.
type numbers struct {
	file   string
	last   int64        // of what was said last
	put    int64        // aside, and durable: none larger was used
	passed atomic.Int64 // the next number is larger
}

// aside is what the file has.
type aside struct {
	UpTo int64 `json:"upTo"` // the largest number in use
}

// openNumbers goes on behind what any process before this one may have said. Where that
// cannot be read, the clock has to do.
func openNumbers(file string, log *slog.Logger) *numbers {
	var before aside
	if err := disk.ReadJSON(file, maxNumbersBytes, &before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("how far this PC has counted what it said to its team is not known", "err", err)
	}
	return &numbers{file: file, last: before.UpTo, put: before.UpTo}
}

// next is the next number. Who calls it does so alone.
func (n *numbers) next(now time.Time) (int64, error) {
	number := max(n.last+1, now.UnixNano(), n.passed.Load()+1)
	if number > n.put {
		upTo := number + int64(reserveAhead)
		if err := disk.WriteJSON(n.file, aside{UpTo: upTo}); err != nil {
			return 0, err
		}
		n.put = upTo
	}
	n.last = number
	return number, nil
}

// pass makes the next number larger than that one.
func (n *numbers) pass(number int64) { n.passed.Store(max(n.passed.Load(), number)) }
