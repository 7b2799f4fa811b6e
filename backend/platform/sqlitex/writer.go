package sqlitex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"bridge/backend/core/bridge"
)

// maxBatch bounds how many callers share one commit. So it bounds how long the
// first one waits for the others' rows.
const maxBatch = 64

// Writer owns the only writing connection. Callers queue closures. A caller that finds
// no leader becomes the leader: it runs the queued closures in one transaction,
// commits, answers the callers and hands leadership to the next caller.
type Writer struct {
	path         string
	with         Attachment
	pool         *sql.DB
	tx           *Tx
	file         fs.FileInfo // identity of the store when it was opened
	checkpointer *checkpointer
	onCommit     atomic.Pointer[func()] // called after every commit; may be nil

	mu            sync.Mutex
	waiting       []*write
	leading       bool
	lastBatchSize int // number of callers that the last batch answered
	closed        bool
	idle          chan struct{} // closed when closed is set and there is no leader
}

// write is one caller's closure in the queue.
type write struct {
	apply   func(*Tx) error
	alone   func() error // instead of apply: runs outside a transaction
	claimed bool         // a leader took it: its outcome will follow
	wake    chan bool    // capacity 1: true = lead now, false = err holds the outcome
	err     error
}

// liveCacheKiB is the page cache of a running broker's writer, in KiB; each reader
// has readCacheKiB. The driver's allocator uses slots of 8 KiB, seven in 64 KiB,
// for one page of 4 KiB with header. So a cache takes 2.3 times its size.
const (
	liveCacheKiB = 1500
	readCacheKiB = 500
)

var errClosed = bridge.Errorf(bridge.Unavailable, "the store is closed")

// OpenWriter opens the database at path and its attachment for writing. The checkpointer
// runs keepUp in a separate write after some writes. It fails with Storage.
func OpenWriter(ctx context.Context, path string, with Attachment, keepUp func(*Tx) error, log *slog.Logger) (*Writer, error) {
	pool := OpenAttached(WriterDSN(path), with, "")
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return nil, Error(path, err)
	}
	if with.Path != "" {
		// A store from another journal mode has a log only after a first read.
		// SQLite refuses to move two logs if it knows only one.
		_, err = conn.ExecContext(ctx, "SELECT count(*) FROM main.sqlite_schema; SELECT count(*) FROM "+with.Name+".sqlite_schema") //nolint:gosec // a name of ours
	}
	if err == nil {
		err = CheckpointWAL(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(Error(path, err), conn.Close(), pool.Close())
	}
	// Tx.Begin waits instead of SQLite. The small cache holds the pages of the next
	// commits, the ends of a few lists, and stays in memory while the broker runs.
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = 0; PRAGMA cache_size = -%d", liveCacheKiB)); err != nil {
		return nil, errors.Join(Error(path, err), conn.Close(), pool.Close())
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(Error(path, err), conn.Close(), pool.Close())
	}
	w := &Writer{path: path, with: with, file: file, pool: pool, tx: NewTx(conn), idle: make(chan struct{})}
	w.checkpointer = startCheckpointer(w, keepUp, log)
	return w, nil
}

// OnCommit sets the function that is called after every later batch of writes.
func (w *Writer) OnCommit(notify func()) { w.onCommit.Store(&notify) }

// Do runs apply in a transaction and returns after the synced commit or the failure. apply
// may run twice, so it must reset its results and change nothing else. If ctx ends while
// the closure is queued, Do removes it; after that it returns the outcome. It fails with
// Unavailable after Close, and with Storage if the disk or the database fails.
func (w *Writer) Do(ctx context.Context, apply func(*Tx) error) error {
	return w.queue(ctx, &write{apply: apply})
}

// Alone runs work outside any transaction and blocks new ones meanwhile. It fails as Do does.
func (w *Writer) Alone(ctx context.Context, work func() error) error {
	return w.queue(ctx, &write{alone: work})
}

func (w *Writer) queue(ctx context.Context, own *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own.wake = make(chan bool, 1)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.waiting = append(w.waiting, own)
	lead := !w.leading
	w.leading = true
	w.mu.Unlock()
	if !lead {
		select {
		case lead = <-own.wake:
		case <-ctx.Done():
			if w.withdraw(own) {
				return ctx.Err()
			}
			lead = <-own.wake
		}
	}
	if lead {
		w.lead(own)
	}
	return Error(w.path, own.err)
}

// Queued returns how many callers wait in the queue.
func (w *Writer) Queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// withdraw removes own from the queue. It returns false if a leader took own or own
// was made the leader.
func (w *Writer) withdraw(own *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if own.claimed {
		return false
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(other *write) bool { return other == own })
	return true
}

// lead commits the batch at the head of the queue, answers its callers and hands
// leadership to the first caller that queued meanwhile. The batch includes own.
func (w *Writer) lead(own *write) {
	w.awaitFollowers()
	batch := w.take()
	if batch[0].alone != nil {
		batch[0].err = batch[0].alone()
	} else {
		w.commitBatch(batch)
		w.checkpointer.committed(len(batch), w.tx.pagesLogged())
		if onCommit := w.onCommit.Load(); onCommit != nil {
			(*onCommit)()
		}
	}
	for _, done := range batch {
		if done != own {
			done.wake <- false
		}
	}
	w.handOff()
}

// awaitFollowers waits until the callers of the last batch have queued their next
// write. One commit costs as much as many writes.
func (w *Writer) awaitFollowers() {
	for last := 0; ; runtime.Gosched() {
		w.mu.Lock()
		waiting, lastBatchSize := len(w.waiting), w.lastBatchSize
		w.mu.Unlock()
		if waiting >= lastBatchSize || waiting == last {
			return
		}
		last = waiting
	}
}

func (w *Writer) take() []*write {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 1
	for n < min(len(w.waiting), maxBatch) && w.waiting[n-1].alone == nil && w.waiting[n].alone == nil {
		n++
	}
	batch := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	w.lastBatchSize = max(n, w.lastBatchSize-1)
	for _, write := range batch {
		write.claimed = true
	}
	return batch
}

func (w *Writer) handOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		w.waiting[0].claimed = true
		w.waiting[0].wake <- true
		return
	}
	w.leading = false
	if w.closed {
		close(w.idle)
	}
}

// commitBatch runs the closures in one transaction. If one closure fails, each
// closure runs again in its own transaction and gets its own result. If the commit
// fails, all callers get that error and nothing of the batch is stored.
func (w *Writer) commitBatch(batch []*write) {
	failed, err := w.tx.commit(batch)
	if err == nil {
		failed, err = false, w.CheckName()
	}
	if err == nil {
		return
	}
	if !failed || len(batch) == 1 {
		for _, write := range batch {
			write.err = err
		}
		return
	}
	for _, item := range batch {
		_, item.err = w.tx.commit([]*write{item})
	}
}

// CheckName fails with Storage if the open file no longer has the store's name.
// Readers of that name would not find the commits.
func (w *Writer) CheckName() error {
	file, err := os.Stat(w.path)
	if err == nil && os.SameFile(file, w.file) {
		return nil
	}
	return bridge.WithCause(bridge.Storage, err, fmt.Sprintf(
		"the store %s was removed or replaced while the broker ran, so nothing can be stored: stop the broker, then put the store back or restore a snapshot", w.path))
}

// Close waits for running writes, moves the log into the file and closes the database.
// Later writes fail with Unavailable.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	if !w.leading {
		close(w.idle)
	}
	w.mu.Unlock()
	<-w.idle
	w.checkpointer.stop()
	return errors.Join(w.tx.Close(), w.pool.Close())
}
