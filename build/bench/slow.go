package main

import (
	"net"
	"sync/atomic"
	"time"
)

// slowWire leads to an address of loopback, later by so much in each direction: what a
// long way is, without its losses and its width.
type slowWire struct {
	listener net.Listener
	target   string
	delay    time.Duration
	carried  atomic.Int64 // bytes, both ways
}

// late is a piece under way.
type late struct {
	data []byte
	due  time.Time
}

func newSlowWire(target string, delay time.Duration) (*slowWire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &slowWire{listener: listener, target: target, delay: delay}
	go w.serve()
	return w, nil
}

func (w *slowWire) address() string { return w.listener.Addr().String() }

func (w *slowWire) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return // it was closed
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = near.Close() // which tells whoever called
			continue
		}
		go w.carry(near, far)
		go w.carry(far, near)
	}
}

// carry brings what comes from one end to the other, in time, and then its end.
func (w *slowWire) carry(from, conn net.Conn) {
	under := make(chan late, 1<<14) // a second of small pieces
	go func() {
		defer close(under)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			if n > 0 {
				under <- late{data[:n], time.Now().Add(w.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for piece := range under {
		time.Sleep(time.Until(piece.due))
		n, err := conn.Write(piece.data)
		w.carried.Add(int64(n))
		if err != nil {
			break
		}
	}
	time.Sleep(w.delay)
	_ = conn.Close() // both ends hear of it
	for range under {
		continue // the reader ends by the closed connection
	}
	_ = from.Close()
}

// through gives a stream to the address a slow way; with nil it is the address itself.
func (w *slowWire) through(target string) (address string, end func(), err error) {
	if w == nil {
		return target, func() {}, nil
	}
	wire, err := newSlowWire(target, w.delay)
	if err != nil {
		return "", nil, err
	}
	return wire.address(), func() { _ = wire.listener.Close() }, nil
}
