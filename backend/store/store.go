// Package store keeps bridge.db: the messages with the stages of their
// deliveries, the pinned decisions and who was told of them, and the names of
// peers. DB is the one writer of a home: it brings the schema up to date,
// groups the writes of concurrent callers into one synced commit, and returns
// only when that commit is durable. Reader reads beside it, or with no broker
// at all, and has no method that writes.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"bridge/backend/bridge"
)

// SchemaVersion is the number of the newest schema step this build knows.
const SchemaVersion = 9

// busyMillis is how long a connection waits for another process's lock.
const busyMillis = 5000

// Options are what a DB needs from outside. Both are required.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
}

// DB is the open store of a home. One process holds it at a time: the caller
// owns the election lock (AcquireLock). Its methods may be called concurrently.
type DB struct {
	*Reader
	writer *writer
	now    func() time.Time
}

// Open opens the store at path, creates it when there is none and upgrades an
// older schema after a verified copy (VER-01, VER-02). A file that is no Bridge
// store, is newer than this build or can not be read is refused unchanged:
// bridge.Unsupported or bridge.Storage with a sentence that names it (VER-06).
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	found, err := inspect(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = createEmpty(path)
	}
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, path, found, migration{now: opts.Now, log: opts.Log}); err != nil {
		return nil, err
	}
	writer, err := openWriter(ctx, path, opts.Log)
	if err != nil {
		return nil, err
	}
	if err := writer.do(ctx, catchUp); err != nil {
		return nil, errors.Join(err, writer.close())
	}
	return &DB{Reader: &Reader{path: path, own: true}, writer: writer, now: opts.Now}, nil
}

// createEmpty makes the file with access for its owner alone; SQLite gives the
// files beside it the same mode.
func createEmpty(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s can not be created: %v", path, reason(err)))
	}
	return file.Close()
}

// Close waits for the writes under way, moves everything from the log into the
// database file and closes it. Writes that come later are refused.
func (d *DB) Close() error {
	readErr := d.Reader.Close() // first: the last connection to close cleans up, and a reader's can not
	return errors.Join(readErr, d.writer.close())
}

// Version returns the schema version in force.
func (d *DB) Version() int { return SchemaVersion }

// writerDSN opens path for writing. Automatic checkpoints are off: a
// background one keeps their cost out of the commits (checkpoint.go).
func writerDSN(path string) string {
	return dsn(path, "_txlock=immediate",
		"_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(1)",
		"_pragma=wal_autocheckpoint(0)", fmt.Sprintf("_pragma=journal_size_limit(%d)", logBytes), "_pragma=cache_size(-16000)")
}

func dsn(path string, params ...string) string {
	name := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", escapePath(path), busyMillis)
	for _, param := range params {
		name += "&" + param
	}
	return name
}

// escapePath writes path so that SQLite reads it from a file: name unchanged.
func escapePath(path string) string {
	return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}
