package store

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
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bridge/backend/bridge"
)

// maxBatch bounds how many callers share one commit, and so how long the first
// of them waits for the others' rows.
const maxBatch = 64

// writer owns the only connection that writes. Callers hand it closures; the
// caller that finds nobody leading leads: it runs every closure that has
// gathered in one transaction, commits, answers them and passes the lead on.
type writer struct {
	path   string
	compat string // the supplement of an older schema, "" for none
	pool   *sql.DB
	tx     *tx
	file   fs.FileInfo // the store as it was opened
	keeper *housekeeper
	told   atomic.Pointer[index] // hears of every commit; nil where there is none

	mu      sync.Mutex
	waiting []*write
	leading bool
	crowd   int // how many the last batch answered
	closed  bool
	idle    chan struct{} // closed once closed is set and nobody leads
}

// write is one caller's closure in the queue.
type write struct {
	apply func(*tx) error
	alone func() error // instead of apply: runs outside any transaction
	taken bool         // by a leader: its outcome is coming
	wake  chan bool    // capacity 1: true = lead now, false = err holds the outcome
	err   error
}

var errClosed = bridge.Errorf(bridge.Unavailable, "the store is closed")

func openWriter(ctx context.Context, path, compat string, log *slog.Logger) (*writer, error) {
	pool := openAttached(writerDSN(path), compat, "")
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return nil, storageError(path, err)
	}
	if compat != "" {
		// A store that was in another journal mode has a log only once something was
		// read; SQLite refuses to move two logs of which it knows one.
		_, err = conn.ExecContext(ctx, "SELECT count(*) FROM main.sqlite_schema; SELECT count(*) FROM compat.sqlite_schema")
	}
	if err == nil {
		err = settle(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(storageError(path, err), conn.Close(), pool.Close())
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil { // begin waits itself
		return nil, errors.Join(storageError(path, err), conn.Close(), pool.Close())
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(storageError(path, err), conn.Close(), pool.Close())
	}
	w := &writer{path: path, compat: compat, file: file, pool: pool, tx: newTx(conn), idle: make(chan struct{})}
	if compat != "" {
		// What older programs lack is not in their store: its notices go by the outbox.
		w.tx.apart, err = w.tx.exists("SELECT EXISTS (SELECT 1 FROM compat.sqlite_schema WHERE name = 'decisions') AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'decisions')")
		if err != nil {
			return nil, errors.Join(storageError(path, err), w.tx.close(), pool.Close())
		}
	}
	w.keeper = startHousekeeper(w, log)
	return w, nil
}

// do runs apply in a transaction and returns once it is committed and synced,
// or refused. apply may run twice and must change nothing but its own results,
// which it sets anew each time. A caller that gives up while its closure still
// waits is gone without a trace; once a leader took it, do returns its outcome.
func (w *writer) do(ctx context.Context, apply func(*tx) error) error {
	return w.queue(ctx, &write{apply: apply})
}

// alone runs work while no transaction is open and none begins.
func (w *writer) alone(ctx context.Context, work func() error) error {
	return w.queue(ctx, &write{alone: work})
}

func (w *writer) queue(ctx context.Context, own *write) error {
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
	return storageError(w.path, own.err)
}

// withdraw takes own out of the queue, unless a leader has it or it was asked
// to lead.
func (w *writer) withdraw(own *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if own.taken {
		return false
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(other *write) bool { return other == own })
	return true
}

// lead commits the batch at the head of the queue, own included, answers it and
// passes the lead to the first of those that gathered meanwhile.
func (w *writer) lead(own *write) {
	w.gather()
	batch := w.take()
	if batch[0].alone != nil {
		batch[0].err = batch[0].alone()
	} else {
		w.commitBatch(batch)
		w.keeper.committed(len(batch), w.tx.pagesLogged())
		w.told.Load().committed()
	}
	for _, done := range batch {
		if done != own {
			done.wake <- false
		}
	}
	w.pass()
}

// gather lets the callers that the last batch answered come back with their
// next write before this one begins: a commit costs as much as many writes.
func (w *writer) gather() {
	for last := 0; ; runtime.Gosched() {
		w.mu.Lock()
		waiting, crowd := len(w.waiting), w.crowd
		w.mu.Unlock()
		if waiting >= crowd || waiting == last {
			return
		}
		last = waiting
	}
}

func (w *writer) take() []*write {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 1
	for n < min(len(w.waiting), maxBatch) && w.waiting[n-1].alone == nil && w.waiting[n].alone == nil {
		n++
	}
	batch := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	w.crowd = max(n, w.crowd-1)
	for _, taken := range batch {
		taken.taken = true
	}
	return batch
}

func (w *writer) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		w.waiting[0].taken = true
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
func (w *writer) commitBatch(batch []*write) {
	failed, err := w.tx.commit(batch)
	if err == nil {
		failed, err = false, w.stillThere()
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

// stillThere refuses what was committed to a file that has no name any more:
// whoever looks under the store's name would not find it.
func (w *writer) stillThere() error {
	file, err := os.Stat(w.path)
	if err == nil && os.SameFile(file, w.file) {
		return nil
	}
	return bridge.WithCause(bridge.Storage, err, fmt.Sprintf(
		"the store %s was removed or replaced while the broker ran, so nothing can be stored: stop the broker, then put the store back or restore a snapshot", w.path))
}

func (w *writer) close() error {
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
	w.keeper.stop()
	return errors.Join(w.tx.close(), w.pool.Close())
}

// tx is the writing connection inside a transaction: what closures get. It
// keeps every statement prepared.
type tx struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	doubtful   bool // the disk refused something: the log must be settled first
	apart      bool // decisions are in the supplement, messages in the store
}

func newTx(conn *sql.Conn) *tx { return &tx{conn: conn, statements: map[string]*sql.Stmt{}} }

func (t *tx) close() error {
	var errs []error
	for _, statement := range t.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, t.conn.Close())...)
}

// commit runs the closures of batch between BEGIN and COMMIT. failed says that
// a closure, not the commit, is the reason of err. After an error of the disk
// nothing is committed before the log is settled.
func (t *tx) commit(batch []*write) (failed bool, err error) {
	if t.doubtful {
		if err := settle(context.Background(), t.conn); err != nil {
			return false, err
		}
		t.doubtful = false
	}
	defer func() { t.doubtful = isDiskError(err) }()
	if err := t.begin(); err != nil {
		return false, err
	}
	for _, one := range batch {
		if err := runPure(one.apply, t); err != nil {
			t.rollback()
			return true, err
		}
	}
	if _, err := t.exec("COMMIT"); err != nil {
		t.rollback()
		return false, err
	}
	return false, nil
}

// lockPause is how often the write lock is asked for while another process has
// it. SQLite's own waiting looks ever more seldom, and would let a sender miss
// the gaps between the batches of an archiving.
const lockPause = 500 * time.Microsecond

// begin takes the write lock, and waits for it up to busyMillis.
func (t *tx) begin() (err error) {
	for range busyMillis * time.Millisecond / lockPause {
		if err = t.tryBegin(); !isBusy(err) {
			return err
		}
		time.Sleep(lockPause) //nolint:forbidigo // no signal comes when another process lets go
	}
	return err
}

func isBusy(err error) bool {
	var reported *sqlite.Error
	return errors.As(err, &reported) && reported.Code()&0xff == sqlite3.SQLITE_BUSY
}

// tryBegin takes the write lock. A rollback that the disk refused may have left a
// transaction behind; it is ended here, or no later write would succeed.
func (t *tx) tryBegin() error {
	_, err := t.exec("BEGIN IMMEDIATE")
	if reported := (*sqlite.Error)(nil); errors.As(err, &reported) && reported.Code() == sqlite3.SQLITE_ERROR {
		t.rollback()
		_, err = t.exec("BEGIN IMMEDIATE")
	}
	return err
}

// pagesLogged returns how many pages were written since it was last asked.
func (t *tx) pagesLogged() (pages int) {
	_ = t.conn.Raw(func(driver any) error { // without the number the log is moved later
		if counter, ok := driver.(sqlite.DBStatus); ok {
			pages, _, _ = counter.Status(sqlite.DBStatusCacheWrite, true)
		}
		return nil
	})
	return pages
}

// runPure keeps a panic of one caller's closure from the others in its batch.
func runPure(apply func(*tx) error, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = bridge.WithCause(bridge.Internal, fmt.Errorf("panic in a write: %v", p), "a write failed by a bug")
		}
	}()
	return apply(t)
}

// rollback ends the transaction. SQLite has already ended it after some errors,
// and then says so: that is what was wanted.
func (t *tx) rollback() { _, _ = t.exec("ROLLBACK") }

// exec runs a statement and returns how many rows it changed. No context: the
// batch belongs to several callers, and none of them may interrupt it.
func (t *tx) exec(query string, args ...any) (int64, error) {
	statement, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	result, err := statement.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *tx) query(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(context.Background(), args...)
}

// exists runs a query of one boolean.
func (t *tx) exists(query string, args ...any) (bool, error) {
	statement, err := t.prepare(query)
	if err != nil {
		return false, err
	}
	var found bool
	err = statement.QueryRowContext(context.Background(), args...).Scan(&found)
	return found, err
}

func (t *tx) prepare(query string) (*sql.Stmt, error) {
	if statement, ok := t.statements[query]; ok {
		return statement, nil
	}
	statement, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.statements[query] = statement
	return statement, nil
}
