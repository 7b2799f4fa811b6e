package sqlitex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bridge/backend/core/bridge"
)

// ErrLocked reports that another process, or another part of this one, holds the
// lock.
var ErrLocked = errors.New("the lock is held")

// Lock is an exclusive lock between processes. The kernel releases it when its
// process ends in any way.
type Lock struct {
	pool *sql.DB
	conn *sql.Conn
}

// AcquireLock creates the small file at path if needed, and locks it without waiting. It
// fails with [ErrLocked] if the lock is held, and with Storage if the file cannot be used.
func AcquireLock(ctx context.Context, path string) (*Lock, error) {
	if err := touch(path); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", "file:"+EscapePath(path)+"?_pragma=busy_timeout(0)")
	if err != nil {
		return nil, fmt.Errorf("opening the lock %s: %w", path, err)
	}
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err != nil {
		_ = pool.Close()
		return nil, lockError(path, err)
	}
	return &Lock{pool: pool, conn: conn}, nil
}

// touch creates the file with access for its owner only. It never opens an existing
// file: closing it would drop the locks of this process on it.
func touch(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the lock %s cannot be created: %v", path, Reason(err)))
	}
	return errors.Join(file.Chmod(0o600), file.Close()) // the umask may have removed permissions
}

func lockError(path string, err error) error {
	var reported *sqlite.Error
	if errors.As(err, &reported) && reported.Code()&0xff == sqlite3.SQLITE_BUSY {
		return fmt.Errorf("lock %s: %w", path, ErrLocked)
	}
	return Error(path, err)
}

// Release releases the lock and leaves the file. It fails if the database
// connection cannot be closed.
func (l *Lock) Release() error {
	_, err := l.conn.ExecContext(context.Background(), "ROLLBACK")
	return errors.Join(err, l.conn.Close(), l.pool.Close())
}
