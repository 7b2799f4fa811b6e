package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bridge/backend/bridge"
)

// tx is the writing connection inside a transaction: what closures get. It
// keeps every statement prepared.
type tx struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	doubtful   bool // the disk refused something: the log must be settled first
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
