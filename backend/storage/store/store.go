// Package store keeps bridge.db: the messages with the stages of their
// deliveries, the pinned decisions and who was told of them, and the names of
// peers. DB is the one writer of a home: it has the schema brought up to date
// (upgrade), groups the writes of concurrent callers into one synced commit
// (sqlitex.Writer), and returns only when that commit is durable. A search index
// in history.db follows it (fulltext), and what the page asks for at each look is kept
// (kept). Reader reads beside it, or with no broker at all, and has no method that writes.
// It also moves mail that is too old to the archived messages.
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

	group int                                   // documents in a group of the index; tests make smaller ones
	step  func(name string, on *sql.Conn) error // upgrade.Options.Step
}

// DB is the open store of a home. One process holds it at a time: the caller
// owns the election lock (sqlitex.AcquireLock). Its methods may be called concurrently.
type DB struct {
	*Reader
	writer  cache.Writer
	now     func() time.Time
	version int    // of the schema in force
	sidecar string // the sidecar of a store that keeps its schema, "" for none
	notices string // the statement that stores a notice of a decision
}

// Open opens the store at path, creates it when there is none and upgrades an
// older schema after a verified copy (VER-01, VER-02). A file that is no Bridge
// store, is newer than this build or cannot be read is refused unchanged:
// bridge.Unsupported or bridge.Storage with a sentence that names it (VER-06).
// While an older program is alive, the upgrade of an older store is deferred (VER-04).
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

// openDB opens a store that is ready.
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
	writer := reader.looks.Follow(file, sidecar == "") // else older programs write, too
	return &DB{Reader: reader, writer: writer, now: opts.Now, version: is.Version, sidecar: sidecar, notices: notices}, nil
}

// decisionsInSidecar asks whether the sidecar has the decisions: what older
// programs lack is not in their store, and its notices go by the outbox.
const decisionsInSidecar = `SELECT EXISTS (SELECT 1 FROM sidecar.sqlite_schema WHERE name = 'decisions')
	AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'decisions')`

// Close waits for the writes under way, moves everything from the log into the
// database file and closes it. Writes that come later are refused.
func (d *DB) Close() error {
	indexErr := d.index.Close()
	readErr := d.Reader.Close() // first: the last connection to close cleans up, and a reader's cannot
	return errors.Join(indexErr, readErr, d.writer.Close())
}

// Version returns the schema version in force: the newest, or that of a store
// that older programs still read.
func (d *DB) Version() int { return d.version }

// deferred reports whether the upgrade is deferred: the store keeps an older schema,
// or one that lost tables.
func (d *DB) deferred() bool { return d.sidecar != "" }
