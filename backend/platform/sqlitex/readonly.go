package sqlitex

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
)

// readConnections bounds how many reads run at once.
const readConnections = 4

// ReadOnly reads a database and cannot change it. If a log exists, it follows the
// log. Without a log there is no writer, and it opens the file immutable: an
// ordinary read-only connection would create files and leave them there. Its
// methods are safe for concurrent use.
type ReadOnly struct {
	path string
	with Attachment
	own  bool // this process also has the writer: a log exists

	mu     sync.RWMutex // read-locked while a read runs
	pool   *ReadPool    // nil until the first read
	seen   mark         // the state that pool reads
	closed bool
}

// NewReadOnly returns a reader without opening the file. own means that this process writes the database.
func NewReadOnly(path string, with Attachment, own bool) *ReadOnly {
	return &ReadOnly{path: path, with: with, own: own}
}

// Close closes the connections. Later reads fail with Unavailable.
func (r *ReadOnly) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.disconnect()
}

func (r *ReadOnly) disconnect() error {
	if r.pool == nil {
		return nil
	}
	err := r.pool.Close()
	r.pool = nil
	return err
}

func (r *ReadOnly) mark() (mark, error) {
	if r.own || HasLog(r.path) || r.with.Path != "" && HasLog(r.with.Path) {
		return mark{logged: true}, nil
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return mark{}, fmt.Errorf("the store %s: %w", r.path, err)
	}
	return mark{size: info.Size(), changed: info.ModTime()}, nil
}

// Read runs ask on one state of the database. It may run ask again, so ask must reset
// its results. It fails with Unavailable after Close, else as [Error] reports.
func (r *ReadOnly) Read(ctx context.Context, ask func(*ReadPool) error) error {
	var stable bool
	var err error
	for range maxLooks {
		if stable, err = r.look(ask); stable || ctx.Err() != nil {
			break
		}
	}
	return Error(r.path, err)
}

// look runs ask once. stable reports that the answer or the error belongs to one state.
func (r *ReadOnly) look(ask func(*ReadPool) error) (stable bool, err error) {
	seen, err := r.mark()
	if err != nil {
		return true, err
	}
	if err := r.connect(seen); err != nil {
		return true, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.fits(seen) { // closed, or another read saw a newer state
		return r.closed, errClosed
	}
	err = ask(r.pool)
	return r.stillAt(seen), err
}

// connect makes r.pool fit the given mark.
func (r *ReadOnly) connect(seen mark) error {
	r.mu.RLock()
	isCurrent := r.fits(seen)
	r.mu.RUnlock()
	if isCurrent {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.fits(seen) {
		return nil
	}
	if err := r.disconnect(); err != nil {
		return err
	}
	params, beside := []string{"mode=ro", "_pragma=query_only(1)", fmt.Sprintf("_pragma=cache_size(-%d)", readCacheKiB)}, "?mode=ro"
	if !seen.logged {
		params, beside = append(params, "immutable=1"), "?mode=ro&immutable=1"
	}
	pool := OpenAttached(DSN(r.path, params...), r.with, beside)
	pool.SetMaxOpenConns(readConnections)
	pool.SetMaxIdleConns(readConnections)
	r.pool, r.seen = NewReadPool(pool), seen
	return nil
}

// fits reports whether the connections read the state of the mark. Connections that
// follow a log always do: they prevent the log's removal.
func (r *ReadOnly) fits(seen mark) bool {
	return r.pool != nil && (r.seen.logged || r.seen == seen)
}

func (r *ReadOnly) stillAt(seen mark) bool {
	current, err := r.mark()
	return seen.logged || err == nil && current == seen
}

// ReadPool is a pool of connections that caches prepared statements.
type ReadPool struct {
	pool *sql.DB

	mu         sync.Mutex // guards statements
	statements map[string]*sql.Stmt
}

// NewReadPool wraps pool; Close closes it.
func NewReadPool(pool *sql.DB) *ReadPool {
	return &ReadPool{pool: pool, statements: map[string]*sql.Stmt{}}
}

// Close closes the pool. Later queries fail.
func (p *ReadPool) Close() error { return p.pool.Close() }

// Query runs a prepared query (Querier). It fails with SQLite's error, or if ctx
// ends.
func (p *ReadPool) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (p *ReadPool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if statement, ok := p.statements[query]; ok {
		return statement, nil
	}
	statement, err := p.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.statements[query] = statement
	return statement, nil
}
