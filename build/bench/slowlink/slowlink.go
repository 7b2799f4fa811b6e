// Package slowlink forwards TCP connections with a fixed delay in each direction, without the
// losses and the limited bandwidth of a long distance.
package slowlink

import (
	"net"
	"sync/atomic"
	"time"
)

// Link forwards connections to an address, with a delay.
type Link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	carried  atomic.Int64 // bytes in both directions
}

// delayed is data that is not written yet.
type delayed struct {
	data []byte
	due  time.Time
}

// Listen forwards connections from a free port of loopback to target. It fails if it cannot
// listen.
func Listen(target string, delay time.Duration) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, target: target, delay: delay}
	go l.serve()
	return l, nil
}

// Address returns the address at which l listens, as host:port.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Carried returns the number of forwarded bytes, in both directions.
func (l *Link) Carried() int64 { return l.carried.Load() }

// Close stops listening. Open connections stay.
func (l *Link) Close() error { return l.listener.Close() }

func (l *Link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // it was closed
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = near.Close() // which tells the caller
			continue
		}
		go l.carry(near, far)
		go l.carry(far, near)
	}
}

// carry writes the data of one connection to the other after the delay, and then closes it.
func (l *Link) carry(from, conn net.Conn) {
	queue := make(chan delayed, 1<<14) // a second of small pieces
	go func() {
		defer close(queue)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			if n > 0 {
				queue <- delayed{data[:n], time.Now().Add(l.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for piece := range queue {
		time.Sleep(time.Until(piece.due))
		n, err := conn.Write(piece.data)
		l.carried.Add(int64(n))
		if err != nil {
			break
		}
	}
	time.Sleep(l.delay)
	_ = conn.Close() // which both ends notice
	for range queue {
		continue // the reader ends by the closed connection
	}
	_ = from.Close()
}

// Through returns an address that leads to target with the delay of l, and a function that
// closes it. For a nil Link this is target itself. It fails if it cannot listen.
func (l *Link) Through(target string) (address string, end func(), err error) {
	if l == nil {
		return target, func() {}, nil
	}
	slow, err := Listen(target, l.delay)
	if err != nil {
		return "", nil, err
	}
	return slow.Address(), func() { _ = slow.Close() }, nil
}
