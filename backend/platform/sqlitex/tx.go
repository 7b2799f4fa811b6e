package sqlitex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bridge/backend/core/bridge"
)

// Tx is the writing connection inside a transaction; [Writer] passes it to
// closures. It caches prepared statements.
type Tx struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	doubtful   bool // after a disk error: the log must be checkpointed first
}

// NewTx wraps the connection; Close closes it.
func NewTx(conn *sql.Conn) *Tx { return &Tx{conn: conn, statements: map[string]*sql.Stmt{}} }

// Close closes the statements and the connection. It fails if one of them cannot be
// closed.
func (t *Tx) Close() error {
	var errs []error
	for _, statement := range t.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, t.conn.Close())...)
}

// commit runs the closures of batch between BEGIN and COMMIT. failed reports that a
// closure, not the commit, caused err. After a disk error it checkpoints the log
// before the next commit.
func (t *Tx) commit(batch []*write) (failed bool, err error) {
	if t.doubtful {
		if err := CheckpointWAL(context.Background(), t.conn); err != nil {
			return false, err
		}
		t.doubtful = false
	}
	defer func() { t.doubtful = IsDiskError(err) }()
	if err := t.Begin(); err != nil {
		return false, err
	}
	for _, write := range batch {
		if err := runPure(write.apply, t); err != nil {
			t.Rollback()
			return true, err
		}
	}
	if _, err := t.Exec("COMMIT"); err != nil {
		t.Rollback()
		return false, err
	}
	return false, nil
}

// lockPause is the interval between attempts to take another process's write lock.
// SQLite's own waiting retries ever less often. A sender would then miss the gaps
// between the batches of an archiving.
const lockPause = 500 * time.Microsecond

// Begin takes the write lock. It fails if the lock is still held after busyMillis.
func (t *Tx) Begin() (err error) {
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

// tryBegin takes the write lock. A failed rollback may have left a transaction
// open; tryBegin ends that one first, or every later write would fail.
func (t *Tx) tryBegin() error {
	_, err := t.Exec("BEGIN IMMEDIATE")
	if reported := (*sqlite.Error)(nil); errors.As(err, &reported) && reported.Code() == sqlite3.SQLITE_ERROR {
		t.Rollback()
		_, err = t.Exec("BEGIN IMMEDIATE")
	}
	return err
}

// pagesLogged returns how many pages were written since its last call.
func (t *Tx) pagesLogged() (pages int) {
	_ = t.conn.Raw(func(driver any) error { // without the number the log is moved later
		if counter, ok := driver.(sqlite.DBStatus); ok {
			pages, _, _ = counter.Status(sqlite.DBStatusCacheWrite, true)
		}
		return nil
	})
	return pages
}

// runPure turns a panic of one closure into Internal, so the others in the batch continue.
func runPure(apply func(*Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = bridge.WithCause(bridge.Internal, fmt.Errorf("panic in a write: %v", p), "a write failed by a bug")
		}
	}()
	return apply(t)
}

// Rollback ends the transaction. After some errors SQLite has already ended it; the
// error that SQLite then returns is ignored.
func (t *Tx) Rollback() { _, _ = t.Exec("ROLLBACK") }

// Exec runs a statement and returns how many rows it changed. It takes no context:
// the batch belongs to several callers, and none of them may interrupt it. It fails
// with SQLite's error, which [Error] makes readable.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
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

// Query runs a prepared query (Querier). It ignores the context, and fails, as Exec
// does.
func (t *Tx) Query(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(context.Background(), args...)
}

// Exists runs a query with one boolean result.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	statement, err := t.prepare(query)
	if err != nil {
		return false, err
	}
	var found bool
	err = statement.QueryRowContext(context.Background(), args...).Scan(&found)
	return found, err
}

func (t *Tx) prepare(query string) (*sql.Stmt, error) {
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
