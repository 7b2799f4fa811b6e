package link

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Whoever hears that there is no link asks again: that must not be said of a frame that
// was written while the link ended (RMT-15).
func TestRMT_15_AFrameThatWasWrittenIsNotSaidToBeUnsent(t *testing.T) {
	for range 100 {
		c := &conn{commands: make(chan outgoing, 1), done: make(chan struct{}), written: make(chan struct{})}
		go func() {
			out := <-c.commands
			close(c.done)
			out.sent <- nil
			close(c.written)
		}()
		if err := c.send(t.Context(), remote.Frame{Type: "x"}, c.commands); err != nil {
			t.Fatalf("it was written, and its sender hears: %v", err)
		}
	}
}

func TestRMT_15_AFrameThatNobodyWritesAnyMoreIsUnsent(t *testing.T) {
	for range 100 {
		c := &conn{commands: make(chan outgoing, 1), done: make(chan struct{}), written: make(chan struct{})}
		close(c.done)
		close(c.written)
		if err := c.send(t.Context(), remote.Frame{Type: "x"}, c.commands); bridge.CodeOf(err) != bridge.Unavailable {
			t.Fatalf("nobody wrote it, and its sender hears: %v", err)
		}
	}
}
