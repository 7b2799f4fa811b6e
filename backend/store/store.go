// Package store keeps bridge.db: the messages with the stages of their
// deliveries, the pinned decisions and who was told of them, and the names of
// peers. DB is the one writer of a home: it brings the schema up to date,
// groups the writes of concurrent callers into one synced commit, and returns
// only when that commit is durable. A search index in history.db follows it.
// Reader reads beside it, or with no broker at all, and has no method that writes.
package store

import (
	"context"
	"database/sql"
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
	"bridge/backend/disk"
)

// SchemaVersion is the number of the newest schema step this build knows.
const SchemaVersion = 9

// busyMillis is how long a connection waits for another process's lock.
const busyMillis = 5000

// Options are what a DB needs from outside. Now and Log are required.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// Index is the path of history.db, where the search index is kept; "" keeps
	// none.
	Index string
	// OldestReader is the newest schema version that every live program of the
	// home can read; 0 when none is older than this build (VER-04).
	OldestReader int
	// Existing says that there is a store: none is made, should it be gone.
	Existing bool

	group int // documents in a group of the index; tests make smaller ones

	// step, when set, is told each named point of a carry-over.
	step func(name string) error
}

func (o Options) at(name string) error {
	if o.step == nil {
		return nil
	}
	return o.step(name)
}

// DB is the open store of a home. One process holds it at a time: the caller
// owns the election lock (AcquireLock). Its methods may be called concurrently.
type DB struct {
	*Reader
	writer  *writer
	now     func() time.Time
	version int // of the schema in force
}

// Open opens the store at path, creates it when there is none and upgrades an
// older schema after a verified copy (VER-01, VER-02). A file that is no Bridge
// store, is newer than this build or can not be read is refused unchanged:
// bridge.Unsupported or bridge.Storage with a sentence that names it (VER-06).
// While an older program is alive, an older store is hosted as it is (VER-04).
func Open(ctx context.Context, path string, opts Options) (db *DB, err error) {
	found, err := inspect(ctx, path)
	made := errors.Is(err, fs.ErrNotExist)
	if opts.Existing && (made || err == nil && found.empty) {
		return nil, errVanished(path)
	}
	if made {
		found.empty, err = true, createEmpty(path)
	}
	if err != nil {
		return nil, err
	}
	if made {
		defer func() { err = dropEmpty(path, err) }()
	}
	var compat string
	if opts.defers(found) {
		compat, err = compatOf(path), prepareCompat(ctx, compatOf(path), found.version)
	} else {
		compat, err = upgradeWhole(ctx, path, found, opts)
		found.version = SchemaVersion
	}
	if err != nil {
		return nil, err
	}
	db, err = openDB(ctx, path, compat, opts)
	if err != nil {
		return nil, err
	}
	db.version = found.version
	if opts.Index != "" {
		db.index = startIndex(opts.Index, db.Reader, opts)
		db.writer.told.Store(db.index)
	}
	return db, nil
}

// upgradeWhole upgrades the store and brings in what was kept beside it while
// older programs read it. compat is the supplement of a store that lost tables.
func upgradeWhole(ctx context.Context, path string, is found, opts Options) (compat string, err error) {
	if !is.empty { // an upgrade would make empty tables in the place of lost ones
		lacks, err := Lacks(ctx, path, PrimaryStore, true)
		if err == nil {
			compat, err = standIn(ctx, path, lacks, opts)
		}
		if err != nil || compat != "" {
			return compat, err
		}
	}
	if err := migrate(ctx, path, is, migration{now: opts.Now, log: opts.Log}); err != nil {
		return "", err
	}
	if !is.empty {
		if err := complete(ctx, path, opts); err != nil {
			return "", err
		}
	}
	return "", carryOver(ctx, path, opts)
}

// openDB opens the store with the supplement compat, "" for none.
func openDB(ctx context.Context, path, compat string, opts Options) (*DB, error) {
	writer, err := openWriter(ctx, path, compat, opts.Log)
	if err != nil {
		return nil, err
	}
	if compat != "" {
		err = writer.do(ctx, mendHosted)
	}
	if err == nil {
		err = writer.do(ctx, catchUp)
	}
	if err != nil {
		return nil, errors.Join(err, writer.close())
	}
	return &DB{Reader: &Reader{path: path, own: true, compat: compat}, writer: writer, now: opts.Now}, nil
}

// createEmpty makes the file with access for its owner alone; SQLite gives the
// files beside it the same mode.
func createEmpty(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s can not be created: %v", path, reason(err)))
	}
	return errors.Join(file.Chmod(0o600), file.Close()) // the umask may have taken bits away
}

// makeWhole makes a database that describe fills. It gets its name when it is
// whole: whoever looks meanwhile, and a disk that fails, finds none rather than
// a broken one.
func makeWhole(ctx context.Context, path string, describe func(context.Context, *sql.DB) error) error {
	if hasLog(path) {
		return loneLog(path)
	}
	temp := disk.TempName(path)
	if err := createEmpty(temp); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", dsn(temp, "_pragma=journal_mode(MEMORY)", "_pragma=synchronous(FULL)"))
	if err == nil {
		err = errors.Join(describe(ctx, pool), pool.Close())
	}
	if err == nil {
		err = disk.Publish(temp, path)
	}
	if err != nil {
		return errors.Join(storageError(path, err), dropUnmade(temp))
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

// dropEmpty takes a database away again that its maker could put nothing in: an
// empty one would stand for a loss. It returns why that failed.
func dropEmpty(path string, failure error) error {
	if info, err := os.Lstat(path); failure == nil || err != nil || info.Size() > 0 {
		return failure
	}
	return errors.Join(failure, os.Remove(path))
}

// Close waits for the writes under way, moves everything from the log into the
// database file and closes it. Writes that come later are refused.
func (d *DB) Close() error {
	indexErr := d.index.close()
	readErr := d.Reader.Close() // first: the last connection to close cleans up, and a reader's can not
	return errors.Join(indexErr, readErr, d.writer.close())
}

// Version returns the schema version in force: the newest, or that of a store
// that older programs still read.
func (d *DB) Version() int { return d.version }

// hosted reports whether the store keeps an older schema, or one that lost tables.
func (d *DB) hosted() bool { return d.compat != "" }

// writerDSN opens path, which is there, for writing: SQLite would make an empty
// file in the place of one that was taken away. Automatic checkpoints are off: a
// background one keeps their cost out of the commits (housekeeping.go).
func writerDSN(path string) string {
	return dsn(path, "mode=rw", "_txlock=immediate",
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
