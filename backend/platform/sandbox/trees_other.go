//go:build !linux

package sandbox

import (
	"errors"
	"net"
)

// socket is one end of a TCP connection.
type socket struct {
	user int // the user who opened it
}

// peerOf fails with [errors.ErrUnsupported]: this system does not report the owner.
func peerOf(net.Conn) (socket, error) { return socket{}, errors.ErrUnsupported }

// holdersOf fails with [errors.ErrUnsupported], as peerOf does.
func holdersOf(socket) ([]int, error) { return nil, errors.ErrUnsupported }

// isHeldBy returns false: this system does not report it.
func (socket) isHeldBy(int) bool { return false }

// carries returns false: this process may not read other environments.
func carries(int, Mark) bool { return false }
