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
	// reserveAhead is how much time the numbers of one reservation last.
	reserveAhead    = 10 * time.Minute
	maxNumbersBytes = 1 << 10
)

// numbers counts the messages of this PC: by its clock in nanoseconds, and always higher than
// before, also than in earlier processes. Recipients drop messages with a lower number, so a
// clock that was set back must not silence this PC.
type numbers struct {
	file     string
	last     int64        // the last number in use
	reserved int64        // durable: no higher number was used
	floor    atomic.Int64 // the next number is higher
}

// reservation is the content of the file.
type reservation struct {
	UpTo int64 `json:"upTo"` // the largest number in use
}

// openNumbers continues after the reservation of earlier processes. If the file cannot be read,
// it starts at the clock.
func openNumbers(file string, log *slog.Logger) *numbers {
	var before reservation
	if err := disk.ReadJSON(file, maxNumbersBytes, &before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("how far this PC has counted what it said to its team is not known", "err", err)
	}
	return &numbers{file: file, last: before.UpTo, reserved: before.UpTo}
}

// next returns the next number. It is not safe for concurrent use. It fails if a new
// reservation cannot be written.
func (n *numbers) next(now time.Time) (int64, error) {
	number := max(n.last+1, now.UnixNano(), n.floor.Load()+1)
	if number > n.reserved {
		upTo := number + int64(reserveAhead)
		if err := disk.WriteJSON(n.file, reservation{UpTo: upTo}); err != nil {
			return 0, err
		}
		n.reserved = upTo
	}
	n.last = number
	return number, nil
}

// skipTo makes the next number higher than number.
func (n *numbers) skipTo(number int64) { n.floor.Store(max(n.floor.Load(), number)) }
