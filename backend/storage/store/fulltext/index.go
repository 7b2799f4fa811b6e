// Package fulltext keeps the search index of history.db. FTS5 ranks the documents that
// contain a word, and Bridge's own groups of trigrams find any piece of text. An index
// follows a store through an interface of one method, from cursors that are durable
// together with the indexed data. The whole index can be rebuilt from the store, so a
// damaged one is set aside and recreated. The texts stay in the store.
//
// FTS5 has a tokenizer for trigrams. It was measured before ours was kept, on 1,000,000
// messages of 512 bytes. With detail=none it takes 444 bytes and 234 µs of processor time
// a message (ours, with words: 742 bytes and 128 µs). It finds a piece of three
// characters or more in 457 ms at the 95th percentile and in 2.5 s at worst, because it
// must read every candidate's text. A shorter piece without hits takes more than 4 s,
// because the index does not cover it (ours: any piece within 150 ms, which the
// benchmarks check). With detail=full it takes 1,732 bytes a message.
package fulltext

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// historyVersion is the newest schema version of history.db that this build supports;
// searchVersion that of the index component.
const (
	historyVersion = 2
	searchVersion  = 1
)

// indexCacheKiB is the cache of each connection to the index: small, because the broker
// is small and most queries read different pages.
const indexCacheKiB = 500

// indexReaders limits how many queries run at once.
const indexReaders = 4

// Index keeps the search index in history.db. One goroutine follows the store's commits
// from cursors that are durable with the indexed data. So an index continues after a
// crash where it was. No sender waits for it, and while senders are busy it uses a tenth
// of the time.
type Index struct {
	path  string
	store Store
	log   *slog.Logger
	now   func() time.Time
	// enough is the number of documents in a group.
	enough int

	commits     atomic.Int64          // the store's commits, counted by its writer
	commitCount atomic.Int64          // the commits before the last batch
	full        lifecycle.Signal      // a whole batch has come
	began       bool                  // something was indexed since the start; used by the goroutine only
	damage      atomic.Pointer[error] // damage that a query met, for the goroutine to repair
	nudge       lifecycle.Signal      // one pending nudge suffices
	ended       chan struct{}
	cancel      context.CancelFunc

	mu      sync.RWMutex // held for reading during a query
	file    *indexFile   // nil while the index is unusable
	problem error        // why, as a text for people; nil with a file
}

// indexFile is the open history.db: one connection writes, others read.
type indexFile struct {
	pool *sql.DB
	tx   *sqlitex.Tx
	read *sqlitex.ReadPool
}

// errOpening is the error of a query while there is no file yet.
var errOpening = bridge.Errorf(bridge.Unavailable, "the search index is being opened: try again in a moment")

// Options configures an [Index]. All fields except Group are required.
type Options struct {
	Path  string // of history.db
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
	Group int // documents in a group; 0 for the default
}

// Store is the indexed store with its archive.
type Store interface {
	// Read runs ask on one state of the store, or of its archive; without an archive it
	// does not call ask. ask may run again and must reset its results. The error of an
	// unreadable archive contains schema.ErrArchive.
	Read(ctx context.Context, archive bool, ask func(View) error) error
}

// View is one state of a store.
type View interface {
	sqlitex.Querier
	Has(table string) bool
}

// Start starts an index that follows the store until Close.
func Start(opts Options) *Index {
	ctx, cancel := context.WithCancel(context.Background())
	x := &Index{
		path: opts.Path, store: opts.Store, log: opts.Log, now: opts.Now, cancel: cancel, enough: groupDocuments,
		nudge: lifecycle.NewSignal(), full: lifecycle.NewSignal(), ended: make(chan struct{}),
		problem: errOpening,
	}
	if opts.Group > 0 {
		x.enough = opts.Group
	}
	go x.loop(ctx)
	return x
}

// Committed signals that the store has new data. It ignores a nil index.
func (x *Index) Committed() {
	if x == nil {
		return
	}
	if x.commits.Add(1)-x.commitCount.Load() >= batchCommits {
		x.full.Notify()
	}
	x.notify()
}

func (x *Index) notify() {
	x.nudge.Notify()
}

// Close waits for the running work and closes history.db. It fails if the file cannot be
// closed.
func (x *Index) Close() error {
	if x == nil {
		return nil
	}
	x.cancel()
	<-x.ended
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shut()
}

// shut closes the file; the caller holds the lock.
func (x *Index) shut() error {
	if x.file == nil {
		return nil
	}
	file := x.file
	x.file, x.problem = nil, errOpening
	return errors.Join(file.read.Close(), file.tx.Close(), file.pool.Close())
}

// While senders are busy, the index uses 1/(restFactor + 1) of the time; the rest after a
// step is bounded.
const (
	restFactor  = 9
	shortestNap = 10 * time.Millisecond
	longestNap  = time.Second
)

// New rows are indexed when a batch is complete or, if fewer come, after a moment: a step
// for each commit would slow down the senders. A search misses nothing meanwhile, because
// it reads unindexed rows from the store. The first rows are indexed at once: an index
// with rows is one of the later proofs that there was a store (STO-17).
const (
	batchCommits = 64
	batchWait    = 250 * time.Millisecond
	lateBegin    = 2 * time.Second // for the first rows at the end, if there was no time before
)

// awaitBatch returns when there is enough to index, or damage to repair.
func (x *Index) awaitBatch(ctx context.Context) {
	late := time.NewTimer(batchWait)
	defer late.Stop()
	if x.damage.Load() == nil && x.began {
		select {
		case <-x.full:
		case <-late.C:
		case <-ctx.Done():
		}
	}
	x.commitCount.Store(x.commits.Load())
}

// loop follows the store until ctx ends. It logs a failure once and retries with the next
// commit.
func (x *Index) loop(ctx context.Context) {
	defer close(x.ended)
	reported := ""
	for {
		err := x.catchUp(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			x.log.Warn("the search index could not be kept up; it is tried again", "err", err)
		}
		if err != nil {
			nap(ctx, longestNap) // a full disk does not recover by a retry at every commit
		}
		select {
		case <-ctx.Done():
			x.indexFirst()
			return
		case <-x.nudge:
			x.awaitBatch(ctx)
		}
	}
}

// indexFirst indexes the first rows if the index ends before their turn. If it fails, the
// next start indexes them.
func (x *Index) indexFirst() {
	if x.began {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lateBegin)
	defer cancel()
	if err := x.open(ctx); err != nil {
		return
	}
	_, _ = x.step(ctx)
}

// catchUp indexes until nothing is left, giving way to senders.
func (x *Index) catchUp(ctx context.Context) error {
	if met := x.damage.Swap(nil); met != nil {
		return x.renew(ctx, *met)
	}
	if err := x.open(ctx); err != nil {
		return err
	}
	for {
		pace := x.pace()
		more, err := x.step(ctx)
		if isDamage(err) {
			return x.renew(ctx, err)
		}
		if err != nil || !more {
			return sqlitex.Error(x.path, err)
		}
		x.began = true
		if err := pace.rest(ctx); err != nil {
			return err
		}
	}
}

// pace records when a piece of work began.
type pace struct {
	x       *Index
	commits int64
	start   time.Time
}

func (x *Index) pace() pace { return pace{x, x.commits.Load(), x.now()} }

// rest pauses after a piece of work, if senders were busy meanwhile.
func (p pace) rest(ctx context.Context) error {
	if p.x.commits.Load() != p.commits {
		nap(ctx, min(max(restFactor*p.x.now().Sub(p.start), shortestNap), longestNap))
	}
	return ctx.Err()
}

func nap(ctx context.Context, rest time.Duration) {
	select {
	case <-time.After(rest):
	case <-ctx.Done():
	}
}

// open opens the index, unless it is open.
func (x *Index) open(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file != nil {
		return nil
	}
	file, err := openIndex(ctx, x.path)
	if isDamage(err) {
		if err = x.setAside(ctx, err); err == nil {
			file, err = openIndex(ctx, x.path)
		}
	}
	x.file, x.problem = file, sqlitex.Error(x.path, err)
	return x.problem
}

// renew recreates the index after damage was found in it, if that loses nothing.
func (x *Index) renew(ctx context.Context, damage error) error {
	x.mu.Lock()
	err := errors.Join(x.shut(), x.setAside(ctx, damage))
	if err != nil {
		x.problem = sqlitex.Error(x.path, err)
	}
	x.mu.Unlock()
	if err == nil {
		x.notify()
	}
	return sqlitex.Error(x.path, errors.Join(damage, err))
}

// suspect schedules a rebuild of the index after a query met damage in it.
func (x *Index) suspect(err error) {
	if isDamage(err) {
		x.damage.Store(&err)
		x.notify()
	}
}

// sourceError is an error of the indexed store, not of the index.
type sourceError struct{ error }

// Unwrap returns the error of the store.
func (e sourceError) Unwrap() error { return e.error }

func ofSource(err error) error {
	if err == nil {
		return nil
	}
	return sourceError{err}
}

// damagedIndex states what of an index is damaged.
type damagedIndex struct{ why string }

func (e damagedIndex) Error() string { return e.why }

// isDamage reports whether err means that the index itself is damaged.
func isDamage(err error) bool {
	var source sourceError
	var damaged damagedIndex
	var row sqlitex.RowError
	return !errors.As(err, &source) && (sqlitex.IsDamage(err) || errors.As(err, &damaged) || errors.As(err, &row))
}

// openIndex opens history.db for the index, and creates it if it is missing.
func openIndex(ctx context.Context, path string) (*indexFile, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = sqlitex.CreateWhole(ctx, path, describeIndex)
	case err == nil && !info.Mode().IsRegular():
		err = bridge.Errorf(bridge.Storage, "the search index %s is not a regular file", path)
	case err == nil && info.Size() > 0 && info.Size() < sqlitex.SmallestDatabase:
		err = damagedIndex{"it is too short to be a database"} // SQLite would take it for an empty one
	default:
		err = indexFits(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_txlock=immediate", "_pragma=journal_mode(WAL)", "_pragma=synchronous(NORMAL)",
		fmt.Sprintf("_pragma=journal_size_limit(%d)", sqlitex.LogBytes), fmt.Sprintf("_pragma=cache_size(-%d)", indexCacheKiB)))
	if err != nil {
		return nil, fmt.Errorf("opening the search index %s: %w", path, err)
	}
	pool.SetMaxOpenConns(1)
	file, err := prepareIndex(ctx, path, pool)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return file, nil
}

// indexFits fails with Unsupported for a history.db that this build cannot use, and
// leaves it unchanged (VER-06).
func indexFits(ctx context.Context, path string) error {
	return sqlitex.Quietly(ctx, path, true, func(pool *sql.DB) error {
		seen, tables, err := schema.Read(ctx, pool)
		version := 0
		if err == nil {
			version, err = indexVersion(ctx, pool, slices.Collect(maps.Keys(tables)))
		}
		switch {
		case err != nil:
			return err
		case seen.Version > historyVersion:
			return bridge.Errorf(bridge.Unsupported, "%s has schema version %d and this Bridge knows versions up to %d: use a newer Bridge", path, seen.Version, historyVersion)
		case version > searchVersion:
			return bridge.Errorf(bridge.Unsupported, "the search index %s has version %d and this Bridge knows version %d: use a newer Bridge", path, version, searchVersion)
		case tables["messages"] != "" || tables["archived_messages"] != "":
			return bridge.Errorf(bridge.Unsupported, "%s is a message store in the place of the search index", path)
		case !IsHistory(seen.Version, slices.Collect(maps.Keys(tables))):
			return bridge.Errorf(bridge.Unsupported, "%s is a database, but no history of Bridge's: move it away", path)
		case version == 0:
			return nil // the index is added to it
		}
		return torn(ctx, pool)
	})
}

// IsHistory reports whether a history.db of that version with these tables may be
// Bridge's. One without a version is, if it is new or has a table of ours.
func IsHistory(version int, tables []string) bool {
	return version > 0 || len(tables) == 0 || slices.ContainsFunc(tables, func(table string) bool {
		return strings.HasPrefix(table, "history_") || strings.HasPrefix(table, "search_")
	})
}

// describeIndex adds the index to the database's other content.
func describeIndex(ctx context.Context, pool *sql.DB) error {
	seen, tables, err := schema.Read(ctx, pool)
	if err != nil {
		return err
	}
	text, err := schema.Script("search")
	if isNew := seen.Version == 0 && len(tables) == 0; err == nil && isNew {
		_, err = pool.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", historyVersion))
	}
	if err == nil {
		_, err = pool.ExecContext(ctx, "BEGIN IMMEDIATE; "+text+"; COMMIT")
	}
	return err
}

func prepareIndex(ctx context.Context, path string, pool *sql.DB) (*indexFile, error) {
	if err := describeIndex(ctx, pool); err != nil {
		return nil, err
	}
	read, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro", "_pragma=query_only(1)", fmt.Sprintf("_pragma=cache_size(-%d)", indexCacheKiB)))
	if err != nil {
		return nil, err
	}
	read.SetMaxOpenConns(indexReaders)
	read.SetMaxIdleConns(1)
	read.SetConnMaxIdleTime(time.Minute)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return &indexFile{pool: pool, tx: sqlitex.NewTx(conn), read: sqlitex.NewReadPool(read)}, nil
}

// asked runs ask on the index. Without an index its error states why.
func (x *Index) asked(ask func(sqlitex.Querier) error) error {
	if x == nil {
		return bridge.Errorf(bridge.Unavailable, "there is no search index here")
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.file == nil {
		return x.problem
	}
	err := ask(x.file.read)
	x.suspect(err)
	return sqlitex.Error(x.path, err)
}
