package mcpserver

import (
	"context"
	"io"
)

// frames writes one frame at a time. A host that does not read must not keep the
// process alive: waiting writers are released when the session ends, because the
// write itself cannot be interrupted.
type frames struct {
	output io.Writer
	ended  <-chan struct{}
	turn   chan struct{} // capacity 1: held while a frame is written
}

func newFrames(output io.Writer, ended <-chan struct{}) *frames {
	return &frames{output: output, ended: ended, turn: make(chan struct{}, 1)}
}

// Write returns after the frame is written. It fails if the session ends first; it
// is then unknown whether the host gets the frame.
func (f *frames) Write(frame []byte) (int, error) {
	select {
	case f.turn <- struct{}{}:
	case <-f.ended:
		return 0, context.Canceled
	}
	written := make(chan error, 1)
	go func() {
		defer func() { <-f.turn }()
		_, err := f.output.Write(frame)
		written <- err
	}()
	select {
	case err := <-written:
		return len(frame), err
	case <-f.ended:
		return 0, context.Canceled
	}
}
