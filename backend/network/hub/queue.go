package hub

import (
	"context"
	"sync"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
)

// Limits of frames that wait to be handled: of one PC, of all PCs, and inside the NATS client.
// Frames above a limit are dropped; their senders retry.
const (
	maxQueuedFrames  = 1024
	maxQueuedOfOne   = 16 << 20
	maxQueuedBytes   = 64 << 20
	maxPendingFrames = 8192
	maxPendingBytes  = 32 << 20
)

// budget is memory that several queues share, in bytes.
type budget struct {
	mu        sync.Mutex
	remaining int
}

func (b *budget) take(size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size > b.remaining {
		return false
	}
	b.remaining -= size
	return true
}

func (b *budget) give(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remaining += size
}

// queue holds the frames of one PC until they are handled, in order.
type queue struct {
	shared *budget
	more   lifecycle.Signal // look again

	mu     sync.Mutex
	frames []queued
	bytes  int
}

type queued struct {
	frame remote.Frame
	size  int
}

func newQueue(shared *budget) *queue { return &queue{shared: shared, more: lifecycle.NewSignal()} }

func (q *queue) notify() {
	if q != nil {
		q.more.Notify()
	}
}

// put adds a frame and reports whether there was room.
func (q *queue) put(frame remote.Frame, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == maxQueuedFrames || q.bytes+size > maxQueuedOfOne || !q.shared.take(size) {
		return false
	}
	q.frames, q.bytes = append(q.frames, queued{frame, size}), q.bytes+size
	q.more.Notify()
	return true
}

// pop removes the first frame.
func (q *queue) pop() (remote.Frame, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return remote.Frame{}, false
	}
	first := q.frames[0]
	q.frames[0] = queued{}
	q.frames, q.bytes = q.frames[1:], q.bytes-first.size
	q.shared.give(first.size)
	return first.frame, true
}

// run handles frames until ctx ends. Frames of a PC that is not present yet wait for its
// announcement, up to patience.
func (q *queue) run(ctx context.Context, ready func() (remote.PC, bool), handle func(remote.PC, remote.Frame)) {
	for {
		frame, has := q.pop()
		if !has {
			select {
			case <-q.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		late := time.NewTimer(patience)
		pc, is := ready()
		for waiting := true; !is && waiting; pc, is = ready() {
			select {
			case <-q.more:
			case <-late.C:
				waiting = false
			case <-ctx.Done():
				late.Stop()
				return
			}
		}
		late.Stop()
		if is {
			handle(pc, frame)
		}
	}
}
