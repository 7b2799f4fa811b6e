// Package store keeps bridge.db: messages with their delivery stages, pinned decisions
// with their receipts, and the names of peers. DB is the only writer of a home. It
// upgrades the schema (upgrade), groups concurrent writes into one synced commit
// (sqlitex.Writer), and returns after that commit is durable. A search index in
// history.db follows it (fulltext), and data that the page polls is cached (cache).
// Reader reads at the same time, or without a broker, and has no method that writes. The
// package also moves mail that is too old to the archived messages.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/upgrade"
)

// Options configures a [DB]. Now and Log are required.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// Index is the path of history.db with the search index; "" disables it.
	Index string
	// OldestReader is the newest schema version that every live program of the home can
	// read; 0 if none is older than this build (VER-04).
	OldestReader int
	// Existing is set if there must be a store: if it is gone, none is created.
	Existing bool

	group int                                   // documents in a group of the index; tests use fewer
	step  func(name string, on *sql.Conn) error // upgrade.Options.Step
}

// DB is the open store of a home. One process holds it at a time: the caller owns the
// election lock (sqlitex.AcquireLock). Its methods may be called concurrently.
type DB struct {
	*Reader
	writer  cache.Writer
	now     func() time.Time
	version int    // of the schema in force
	sidecar string // the sidecar of a store that keeps an older schema, "" for none
	notices string // the statement that stores a notice of a decision
}

// Open opens the store at path. It creates a missing store, and upgrades an older schema
// after a verified copy (VER-01, VER-02). It refuses a file that is no Bridge store,
// newer than this build or unreadable, and leaves it unchanged: bridge.Unsupported or
// bridge.Storage with a sentence that names it (VER-06). While an older program runs, it
// defers the upgrade (VER-04).
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	ready, err := upgrade.Prepare(ctx, path, upgrade.Options{
		Now: opts.Now, Log: opts.Log, OldestReader: opts.OldestReader, Existing: opts.Existing, Step: opts.step,
	})
	if err != nil {
		return nil, err
	}
	db, err := openDB(ctx, path, ready, opts)
	if err != nil {
		return nil, err
	}
	if opts.Index != "" {
		db.index = fulltext.Start(fulltext.Options{Path: opts.Index, Store: indexedStore{db.Reader}, Now: opts.Now, Log: opts.Log, Group: opts.group})
		db.writer.OnCommit(db.index.Committed)
	}
	return db, nil
}

// openDB opens a store that upgrade.Prepare has prepared.
func openDB(ctx context.Context, path string, is upgrade.Ready, opts Options) (*DB, error) {
	sidecar := is.Sidecar
	file, err := sqlitex.OpenWriter(ctx, path, upgrade.Attach(sidecar), schema.FollowMessages, opts.Log)
	if err != nil {
		return nil, err
	}
	notices := insertMessage
	if sidecar != "" {
		err = file.Do(ctx, func(t *sqlitex.Tx) error {
			inSidecar, err := t.Exists(decisionsInSidecar)
			if err == nil && inSidecar {
				notices = insertOutbox
			}
			if err != nil {
				return err
			}
			return upgrade.Mend(t)
		})
	}
	if err == nil {
		err = file.Do(ctx, schema.CatchUp)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	reader := &Reader{path: path, own: true, file: sqlitex.NewReadOnly(path, upgrade.Attach(sidecar), true)}
	writer := reader.cache.Subscribe(file, sidecar == "") // else older programs write, too
	return &DB{Reader: reader, writer: writer, now: opts.Now, version: is.Version, sidecar: sidecar, notices: notices}, nil
}

// decisionsInSidecar queries whether the decisions are in the sidecar. Then the store
// that older programs read lacks them, and their notices go through the outbox.
const decisionsInSidecar = `SELECT EXISTS (SELECT 1 FROM sidecar.sqlite_schema WHERE name = 'decisions')
	AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'decisions')`

// Close waits for pending writes, moves the log into the database file and closes it.
// Later writes fail.
func (d *DB) Close() error {
	indexErr := d.index.Close()
	readErr := d.Reader.Close() // first: the last connection to close cleans up, and a reader cannot
	return errors.Join(indexErr, readErr, d.writer.Close())
}

// Version returns the schema version in force: the newest, or that of a store that older
// programs still read.
func (d *DB) Version() int { return d.version }

// deferred reports whether the upgrade is deferred: the store keeps an older schema, or
// one that lost tables.
func (d *DB) deferred() bool { return d.sidecar != "" }
