// Package sqlitex wraps SQLite and its driver, and knows none of Bridge's tables.
// It creates, writes, follows and reads databases, also without a trace. [Writer]
// groups the writes of concurrent callers into one synced commit and checkpoints
// the log in parallel. [ReadOnly] reads with or without a live writer. Errors are
// readable sentences. The package also has a lock between processes, based on a
// SQLite transaction.
package sqlitex

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// busyMillis is how long a connection waits for another process's lock, in milliseconds.
const busyMillis = 5000

// SmallestDatabase is the smallest size of a database in bytes: one page.
const SmallestDatabase = 512

// CreateEmpty creates the file with access for its owner only. SQLite gives the log and the
// journal the same mode. It fails with Storage if the file exists or cannot be made.
func CreateEmpty(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s cannot be created: %v", path, Reason(err)))
	}
	return errors.Join(file.Chmod(0o600), file.Close()) // the umask may have removed permissions
}

// CreateWhole creates a database and fills it with describe. It publishes the name
// last, so a reader or a failed disk never sees a partial database. It fails with
// Storage if a log without its database exists.
func CreateWhole(ctx context.Context, path string, describe func(context.Context, *sql.DB) error) error {
	if HasLog(path) {
		return OrphanLog(path)
	}
	temp := disk.TempName(path)
	if err := CreateEmpty(temp); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", DSN(temp, "_pragma=journal_mode(MEMORY)", "_pragma=synchronous(FULL)"))
	if err == nil {
		err = errors.Join(describe(ctx, pool), pool.Close())
	}
	if err == nil {
		err = disk.Publish(temp, path)
	}
	if err != nil {
		return errors.Join(Error(path, err), dropUnmade(temp))
	}
	return nil
}

// dropUnmade removes a database that was never published.
func dropUnmade(temp string) error {
	if err := os.Remove(temp); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // it was published, and only the sync of its name failed
}

// DropEmpty removes an empty database after its creator failed with failure, because an
// empty database looks like lost data. It removes the journal first, because a journal
// alone looks the same. It returns failure, joined with any error of the removal.
func DropEmpty(path string, failure error) error {
	if info, err := os.Lstat(path); failure == nil || err != nil || info.Size() > 0 {
		return failure
	}
	if err := os.Remove(path + "-journal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failure, err)
	}
	return errors.Join(failure, os.Remove(path))
}

// OrphanLog returns the Storage error for a log whose database is missing. SQLite would
// drop that log with a new database, and it may hold the only copy of its data.
func OrphanLog(path string) error {
	return bridge.Errorf(bridge.Storage, "the store %s is gone but its log %s-wal is there: restore a backup, or move the log away", path, path)
}

// HasLog reports whether the write-ahead log of the database at path holds commits.
func HasLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// SyncFile flushes the file to the disk. It fails if the file is missing.
func SyncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Attachment is a database that connections to another database attach under Name,
// if its file exists. The zero value attaches nothing.
type Attachment struct{ Path, Name string }

// attached opens connections with the attachment.
type attached struct {
	Attachment
	dsn    string
	params string // query part of the attachment's file: name
}

// OpenAttached is sql.Open for a database with an attachment.
func OpenAttached(dsn string, with Attachment, params string) *sql.DB {
	return sql.OpenDB(attached{Attachment: with, dsn: dsn, params: params})
}

// Connect opens a connection (driver.Connector). It fails with SQLite's error if
// the database cannot be opened, and with Storage if an existing attachment cannot.
func (a attached) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := a.Driver().Open(a.dsn)
	if err != nil || a.Path == "" {
		return conn, err
	}
	if _, err := os.Lstat(a.Path); errors.Is(err, fs.ErrNotExist) {
		return conn, nil // it was moved away meanwhile
	}
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver %T cannot attach a database", conn), conn.Close())
	}
	name := driver.NamedValue{Ordinal: 1, Value: "file:" + EscapePath(a.Path) + a.params}
	if _, err := execer.ExecContext(ctx, "ATTACH DATABASE ? AS "+a.Name, []driver.NamedValue{name}); err != nil {
		return nil, errors.Join(Error(a.Path, err), conn.Close())
	}
	return conn, nil
}

// Driver returns the driver (driver.Connector).
func (attached) Driver() driver.Driver { return &sqlite.Driver{} }

// WriterDSN returns the driver's name of the existing database at path, for writing. Without
// mode=rw SQLite would create an empty file for a missing one. Automatic checkpoints are off: a
// background checkpoint keeps their cost out of the commits (checkpoint.go).
func WriterDSN(path string) string {
	return DSN(path, "mode=rw", "_txlock=immediate",
		"_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(1)",
		"_pragma=wal_autocheckpoint(0)", fmt.Sprintf("_pragma=journal_size_limit(%d)", LogBytes), "_pragma=cache_size(-16000)")
}

// DSN returns the driver's name of the database at path, with additional parameters.
func DSN(path string, params ...string) string {
	name := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", EscapePath(path), busyMillis)
	for _, param := range params {
		name += "&" + param
	}
	return name
}

// EscapePath escapes path so that SQLite reads it unchanged from a file: name.
func EscapePath(path string) string {
	return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}
