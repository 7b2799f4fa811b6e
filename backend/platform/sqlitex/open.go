// Package sqlitex is what Bridge knows of SQLite and its driver, and nothing of
// its own tables: how a database is made, written, followed by readers and looked
// at without a trace. Writer groups the writes of concurrent callers into one
// synced commit and moves the log into the file beside them; ReadOnly reads beside
// a writer or with none. Errors come in words for people. It also has the lock
// between processes, which is a transaction of SQLite.
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

// busyMillis is how long a connection waits for another process's lock.
const busyMillis = 5000

// SmallestDatabase is how many bytes a database has at least: one page.
const SmallestDatabase = 512

// CreateEmpty makes the file with access for its owner alone; SQLite gives the
// files beside it the same mode.
func CreateEmpty(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s cannot be created: %v", path, Reason(err)))
	}
	return errors.Join(file.Chmod(0o600), file.Close()) // the umask may have taken bits away
}

// CreateWhole makes a database that describe fills. It gets its name when it is
// whole: whoever looks meanwhile, and a disk that fails, finds none rather than
// a broken one.
func CreateWhole(ctx context.Context, path string, describe func(context.Context, *sql.DB) error) error {
	if HasLog(path) {
		return LoneLog(path)
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

// dropUnmade takes a database away that never got its name.
func dropUnmade(temp string) error {
	if err := os.Remove(temp); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // it got its name, and only that could not be made durable
}

// DropEmpty takes a database away again that its maker could put nothing in: an
// empty one would stand for a loss. So would its journal alone, which a disk that fails
// leaves: it goes first. It returns why that failed.
func DropEmpty(path string, failure error) error {
	if info, err := os.Lstat(path); failure == nil || err != nil || info.Size() > 0 {
		return failure
	}
	if err := os.Remove(path + "-journal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failure, err)
	}
	return errors.Join(failure, os.Remove(path))
}

// LoneLog is why no new database is made where the log of a lost one is: SQLite
// would drop it, and it may hold what is nowhere else.
func LoneLog(path string) error {
	return bridge.Errorf(bridge.Storage, "the store %s is gone but its log %s-wal is there: restore a backup, or move the log away", path, path)
}

// HasLog reports whether commits wait in the write-ahead log beside path.
func HasLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// SyncFile has the system write the file to the disk.
func SyncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Attachment is a database that connections to another one attach under a name,
// if it is there. The zero value is none.
type Attachment struct{ Path, Name string }

// attached opens connections that have the attachment.
type attached struct {
	Attachment
	dsn    string
	params string // of the attachment's file: name
}

// OpenAttached is sql.Open with an attachment.
func OpenAttached(dsn string, with Attachment, params string) *sql.DB {
	return sql.OpenDB(attached{Attachment: with, dsn: dsn, params: params})
}

// Connect opens a connection (driver.Connector).
func (a attached) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := a.Driver().Open(a.dsn)
	if err != nil || a.Path == "" {
		return conn, err
	}
	if _, err := os.Lstat(a.Path); errors.Is(err, fs.ErrNotExist) {
		return conn, nil // it was put away meanwhile
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

// WriterDSN opens path, which is there, for writing: SQLite would make an empty
// file in the place of one that was taken away. Automatic checkpoints are off: a
// background one keeps their cost out of the commits (checkpoint.go).
func WriterDSN(path string) string {
	return DSN(path, "mode=rw", "_txlock=immediate",
		"_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(1)",
		"_pragma=wal_autocheckpoint(0)", fmt.Sprintf("_pragma=journal_size_limit(%d)", LogBytes), "_pragma=cache_size(-16000)")
}

// DSN names the database at path for the driver, with parameters of its own.
func DSN(path string, params ...string) string {
	name := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", EscapePath(path), busyMillis)
	for _, param := range params {
		name += "&" + param
	}
	return name
}

// EscapePath writes path so that SQLite reads it from a file: name unchanged.
func EscapePath(path string) string {
	return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}
