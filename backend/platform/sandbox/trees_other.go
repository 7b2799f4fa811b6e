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

// peerOf fails with [errors.ErrUnsupported]: this system does not tell whose a connection is.
func peerOf(net.Conn) (socket, error) { return socket{}, errors.ErrUnsupported }

// holdersOf fails with [errors.ErrUnsupported], as peerOf does.
func holdersOf(socket) ([]int, error) { return nil, errors.ErrUnsupported }

// isHeldBy reports false: this system does not tell.
func (socket) isHeldBy(int) bool { return false }

// carries finds no mark: other processes' environments are not for us to read.
func carries(int, Mark) bool { return false }
