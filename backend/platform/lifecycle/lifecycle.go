// Package lifecycle starts and stops goroutines that run in the background, and wakes them
// when there is work.
package lifecycle

import (
	"context"
	"sync"
)

// Tasks are the background goroutines of one owner. They end together.
type Tasks struct {
	ctx     context.Context //nolint:containedctx // the lifetime of the goroutines, which no caller owns
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// NewTasks returns Tasks without goroutines. Their context carries the values of ctx, but
// does not end with ctx.
func NewTasks(ctx context.Context) *Tasks {
	t := &Tasks{}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

// Context returns the context of the goroutines. It ends with Cancel and with Stop.
func (t *Tasks) Context() context.Context { return t.ctx }

// Done returns a channel that is closed when the goroutines are to end.
func (t *Tasks) Done() <-chan struct{} { return t.ctx.Done() }

// HasEnded reports whether Cancel or Stop was called.
func (t *Tasks) HasEnded() bool { return t.ctx.Err() != nil }

// Go runs task in a goroutine. The caller must not call Go after Wait has returned.
func (t *Tasks) Go(task func()) { t.running.Go(task) }

// Cancel ends the context and returns at once.
func (t *Tasks) Cancel() { t.cancel() }

// Wait returns when all goroutines have returned.
func (t *Tasks) Wait() { t.running.Wait() }

// Stop ends the context and waits for all goroutines.
func (t *Tasks) Stop() {
	t.cancel()
	t.running.Wait()
}

// Signal wakes one goroutine that receives from it. Calls of Notify do not add up: however
// many come before the goroutine receives, it receives once. After it received, it must
// look at everything that may have changed.
type Signal chan struct{}

// NewSignal returns a Signal that was not notified.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the receiver. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default: // the receiver has one to receive already
	}
}
