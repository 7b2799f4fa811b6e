// Package fulltext keeps the search index of history.db: which documents hold a
// word, ranked by FTS5, and which hold any piece of text, by groups of trigrams of
// our own. An index follows a store by a port of one method, from cursors that are
// durable with what they stand for. All of it can be rebuilt from the store, so a
// damaged one is put aside and made again. The texts themselves stay in the store.
//
// FTS5 has a tokenizer for trigrams, which was measured before ours was kept, on
// 1,000,000 messages of 512 bytes. With detail=none it takes 444 bytes and 234 µs of
// processor time a message (ours, words included: 742 bytes and 128 µs), finds a
// piece of three characters or more in 457 ms at the 95th percentile and in 2.5 s
// at worst, because it must read the text of every candidate, and a shorter piece
// that nothing holds in more than 4 s, because it has no place to look (ours: any
// piece within 150 ms, which the benchmarks hold). With detail=full it takes 1,732
// bytes a message.
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

// historyVersion is the newest schema version of history.db that this build
// works beside; searchVersion that of our component in it.
const (
	historyVersion = 2
	searchVersion  = 1
)

// indexCacheKiB is what each connection to the index keeps of it: little, because
// the broker is small and most questions touch other pages.
const indexCacheKiB = 500

// indexReaders bounds how many questions are answered at once.
const indexReaders = 4

// Index keeps the search index in history.db. One goroutine follows the store's
// commits from cursors that are durable with what they stand for: an index that
// a crash left behind goes on where it was. No sender waits for it, and while
// they are busy it takes a tenth of the time.
type Index struct {
	path  string
	store Store
	log   *slog.Logger
	now   func() time.Time
	// enough documents are made a group.
	enough int

	commits atomic.Int64          // the store's, counted by its writer
	taken   atomic.Int64          // of those, what the last batch began with
	full    lifecycle.Signal      // a whole batch has come
	began   bool                  // something was indexed since the start; the goroutine's own
	damage  atomic.Pointer[error] // what a question met, for the goroutine to mend
	nudge   lifecycle.Signal      // a nudge while one waits adds nothing
	ended   chan struct{}
	cancel  context.CancelFunc

	mu      sync.RWMutex // held for reading while a question runs
	file    *indexFile   // nil while the index cannot be used
	problem error        // why, in words for people; nil with a file
}

// indexFile is the open history.db: one connection writes, others read.
type indexFile struct {
	pool *sql.DB
	tx   *sqlitex.Tx
	read *sqlitex.ReadPool
}

// errOpening is what a question hears before there is a file, and between two.
var errOpening = bridge.Errorf(bridge.Unavailable, "the search index is being opened: try again in a moment")

// Options are what an index needs from outside. All but Group are required.
type Options struct {
	Path  string // of history.db
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
	Group int // documents in a group; 0 for as many as do best
}

// Store is what is indexed: a store and the archive beside it.
type Store interface {
	// Read runs ask on one state of the store, or of its archive; where there is
	// no archive it runs nothing. ask may run again and sets its results anew each
	// time. In an error of an archive that cannot be read is schema.ErrArchive.
	Read(ctx context.Context, archive bool, ask func(View) error) error
}

// View is one state of a store.
type View interface {
	sqlitex.Querier
	Has(table string) bool
}

// Start has the index follow the store until it is closed.
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

// Committed says that the store has more. A nil index has nothing to do.
func (x *Index) Committed() {
	if x == nil {
		return
	}
	if x.commits.Add(1)-x.taken.Load() >= batchCommits {
		x.full.Notify()
	}
	x.poke()
}

func (x *Index) poke() {
	x.nudge.Notify()
}

// Close waits for the work under way and closes history.db.
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

// shut closes the file; the lock is the caller's.
func (x *Index) shut() error {
	if x.file == nil {
		return nil
	}
	file := x.file
	x.file, x.problem = nil, errOpening
	return errors.Join(file.read.Close(), file.tx.Close(), file.pool.Close())
}

// The share of the time that the index takes while senders are busy is one of
// restFactor + 1; the rest after a step is bounded.
const (
	restFactor  = 9
	shortestNap = 10 * time.Millisecond
	longestNap  = time.Second
)

// What has come is indexed when a batch is together or, where less comes, after a
// moment: a step for each commit would take the processor from the very senders
// that made it. Nobody misses a message meanwhile, because a search reads what is
// behind the index in the store itself. What comes first is indexed at once: an
// index with rows is among what tells later that there was a store (STO-17).
const (
	batchCommits = 64
	batchWait    = 250 * time.Millisecond
	lateBegin    = 2 * time.Second // for it at the end, where there was no time before
)

// awaitBatch returns when there is enough to index, or damage to mend.
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
	x.taken.Store(x.commits.Load())
}

// loop follows the store until ctx ends. A failure is told once and tried again
// with the next commit.
func (x *Index) loop(ctx context.Context) {
	defer close(x.ended)
	told := ""
	for {
		err := x.catchUp(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			x.log.Warn("the search index could not be kept up; it is tried again", "err", err)
		}
		if err != nil {
			nap(ctx, longestNap) // a full disk does not pass by trying at every commit
		}
		select {
		case <-ctx.Done():
			x.beginLate()
			return
		case <-x.nudge:
			x.awaitBatch(ctx)
		}
	}
}

// beginLate indexes what came first where the end came before its turn. What it
// cannot do, the next start does.
func (x *Index) beginLate() {
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

// catchUp goes on until nothing is left to index, giving way to senders.
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

// pace remembers when a piece of work began.
type pace struct {
	x       *Index
	commits int64
	start   time.Time
}

func (x *Index) pace() pace { return pace{x, x.commits.Load(), x.now()} }

// rest waits after a piece of work, if senders were busy meanwhile.
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

// open makes the index ready, unless it is.
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

// renew makes the index anew after damage was found in it, where that loses
// nothing.
func (x *Index) renew(ctx context.Context, damage error) error {
	x.mu.Lock()
	err := errors.Join(x.shut(), x.setAside(ctx, damage))
	if err != nil {
		x.problem = sqlitex.Error(x.path, err)
	}
	x.mu.Unlock()
	if err == nil {
		x.poke()
	}
	return sqlitex.Error(x.path, errors.Join(damage, err))
}

// suspect has the index rebuilt after a question met damage in it.
func (x *Index) suspect(err error) {
	if isDamage(err) {
		x.damage.Store(&err)
		x.poke()
	}
}

// sourceError is an error of what is indexed, not of the index.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func ofSource(err error) error {
	if err == nil {
		return nil
	}
	return sourceError{err}
}

// damagedIndex says what of an index is not as it was written.
type damagedIndex struct{ why string }

func (e damagedIndex) Error() string { return e.why }

// isDamage reports whether err says that the index itself is damaged.
func isDamage(err error) bool {
	var source sourceError
	var damaged damagedIndex
	var row sqlitex.RowError
	return !errors.As(err, &source) && (sqlitex.IsDamage(err) || errors.As(err, &damaged) || errors.As(err, &row))
}

// openIndex opens history.db for the index, and makes it when there is none.
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

// indexFits refuses a history.db that this build cannot work beside, and leaves
// its bytes as they are (VER-06).
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
			return nil // the index comes into it
		}
		return torn(ctx, pool)
	})
}

// IsHistory reports whether a history.db of that version with these tables may be
// Bridge's: one without a number is, when it is new or has a table of ours.
func IsHistory(version int, tables []string) bool {
	return version > 0 || len(tables) == 0 || slices.ContainsFunc(tables, func(table string) bool {
		return strings.HasPrefix(table, "history_") || strings.HasPrefix(table, "search_")
	})
}

// describeIndex adds the index to whatever else the database holds.
func describeIndex(ctx context.Context, pool *sql.DB) error {
	seen, tables, err := schema.Read(ctx, pool)
	if err != nil {
		return err
	}
	text, err := schema.Script("search")
	if fresh := seen.Version == 0 && len(tables) == 0; err == nil && fresh {
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

// asked runs ask on the index; its error says why there is none.
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
