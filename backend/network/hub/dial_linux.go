package hub

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUp has the system end a connection on which what was sent is not confirmed for so
// long: it would go on for a quarter of an hour, and keeps no watch on silence meanwhile.
func giveUp(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
		return errors.Join(err, set)
	}
}
