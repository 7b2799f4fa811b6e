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

// maxBatch bounds how many callers share one commit, and so how long the first
// of them waits for the others' rows.
const maxBatch = 64

// Writer owns the only connection that writes. Callers hand it closures; the
// caller that finds nobody leading leads: it runs every closure that has
// gathered in one transaction, commits, answers them and passes the lead on.
type Writer struct {
	path         string
	with         Attachment
	pool         *sql.DB
	tx           *Tx
	file         fs.FileInfo // the store as it was opened
	checkpointer *checkpointer
	heard        atomic.Pointer[func()] // hears of every commit; nil where nobody does

	mu            sync.Mutex
	waiting       []*write
	leading       bool
	lastBatchSize int // how many the last batch answered
	closed        bool
	idle          chan struct{} // closed once closed is set and nobody leads
}

// write is one caller's closure in the queue.
type write struct {
	apply   func(*Tx) error
	alone   func() error // instead of apply: runs outside any transaction
	claimed bool         // by a leader: its outcome is coming
	wake    chan bool    // capacity 1: true = lead now, false = err holds the outcome
	err     error
}

// liveCacheKiB is what the writer of a running broker keeps of its file; each
// reader keeps readCacheKiB. The driver's allocator hands out slots of 8 KiB, seven in
// 64 KiB, for a page of 4 KiB with its header, so that a cache takes 2.3 times of it.
const (
	liveCacheKiB = 1500
	readCacheKiB = 500
)

var errClosed = bridge.Errorf(bridge.Unavailable, "the store is closed")

// OpenWriter opens the database at path with its attachment for writing. keepUp
// runs in a write of its own after some of the callers'.
func OpenWriter(ctx context.Context, path string, with Attachment, keepUp func(*Tx) error, log *slog.Logger) (*Writer, error) {
	pool := OpenAttached(WriterDSN(path), with, "")
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return nil, Error(path, err)
	}
	if with.Path != "" {
		// A store that was in another journal mode has a log only once something was
		// read; SQLite refuses to move two logs of which it knows one.
		_, err = conn.ExecContext(ctx, "SELECT count(*) FROM main.sqlite_schema; SELECT count(*) FROM "+with.Name+".sqlite_schema") //nolint:gosec // a name of ours
	}
	if err == nil {
		err = CheckpointWAL(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(Error(path, err), conn.Close(), pool.Close())
	}
	// begin waits itself; a short cache holds what the next commits touch, the ends
	// of a few lists, and stays in memory for as long as the broker runs.
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

// OnCommit has heard called after every batch of writes from then on.
func (w *Writer) OnCommit(heard func()) { w.heard.Store(&heard) }

// Do runs apply in a transaction and returns once it is committed and synced,
// or refused. apply may run twice and must change nothing but its own results,
// which it sets anew each time. A caller that gives up while its closure still
// waits is gone without a trace; once a leader took it, do returns its outcome.
func (w *Writer) Do(ctx context.Context, apply func(*Tx) error) error {
	return w.queue(ctx, &write{apply: apply})
}

// Alone runs work while no transaction is open and none begins.
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

// Queued returns how many callers wait for a leader.
func (w *Writer) Queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// withdraw takes own out of the queue, unless a leader has it or it was asked
// to lead.
func (w *Writer) withdraw(own *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if own.claimed {
		return false
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(other *write) bool { return other == own })
	return true
}

// lead commits the batch at the head of the queue, own included, answers it and
// passes the lead to the first of those that gathered meanwhile.
func (w *Writer) lead(own *write) {
	w.awaitFollowers()
	batch := w.take()
	if batch[0].alone != nil {
		batch[0].err = batch[0].alone()
	} else {
		w.commitBatch(batch)
		w.checkpointer.committed(len(batch), w.tx.pagesLogged())
		if heard := w.heard.Load(); heard != nil {
			(*heard)()
		}
	}
	for _, done := range batch {
		if done != own {
			done.wake <- false
		}
	}
	w.handOff()
}

// awaitFollowers lets the callers that the last batch answered come back with their
// next write before this one begins: a commit costs as much as many writes.
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
	for _, one := range batch {
		one.claimed = true
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

// commitBatch runs the closures in one transaction. When one of them fails,
// each runs again in its own, so that every caller gets its own answer. A
// failed commit answers all of them: nothing of the batch is stored.
func (w *Writer) commitBatch(batch []*write) {
	failed, err := w.tx.commit(batch)
	if err == nil {
		failed, err = false, w.StillThere()
	}
	if err == nil {
		return
	}
	if !failed || len(batch) == 1 {
		for _, one := range batch {
			one.err = err
		}
		return
	}
	for _, one := range batch {
		_, one.err = w.tx.commit([]*write{one})
	}
}

// StillThere refuses what was committed to a file that has no name any more:
// whoever looks under the store's name would not find it.
func (w *Writer) StillThere() error {
	file, err := os.Stat(w.path)
	if err == nil && os.SameFile(file, w.file) {
		return nil
	}
	return bridge.WithCause(bridge.Storage, err, fmt.Sprintf(
		"the store %s was removed or replaced while the broker ran, so nothing can be stored: stop the broker, then put the store back or restore a snapshot", w.path))
}

// Close waits for the writes under way, moves the log into the file and closes
// the database. Writes that come later are refused.
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
