package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// readConnections bounds how many questions are answered at once.
const readConnections = 4

// Reader answers questions from bridge.db and can not change it: its
// connections are read-only and it has no method that writes (DEC-19). It works
// beside a live broker and with none, on every schema version up to
// SchemaVersion: what an older one lacks is an empty list. Its methods may be
// called concurrently.
type Reader struct {
	path   string
	compat string // beside a store of an older schema, if it is there (compat.go)
	own    bool   // beside the writer of this process: the schema is whole, a log is there

	index *index // nil where none is kept

	mu     sync.RWMutex // held for reading while a question runs
	now    *connection  // nil until the first question
	closed bool

	coldMu sync.Mutex
	cold   *Reader // of the archive beside the store; nil until history needs it
}

// OpenReader opens the store at path for reading. It migrates nothing. With no
// file errors.Is(err, fs.ErrNotExist); a newer or foreign file is
// bridge.Unsupported.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := inspect(ctx, path); err != nil {
		return nil, err
	}
	return &Reader{path: path, compat: compatOf(path)}, nil
}

// Close closes the reader's connections.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return errors.Join(r.disconnect(), r.closeArchive())
}

func (r *Reader) disconnect() error {
	if r.now == nil {
		return nil
	}
	err := r.now.pool.Close()
	r.now = nil
	return err
}

// asker runs a query: a view, or the transaction of a write.
type asker interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// view is what one question sees.
type view struct {
	*connection
	layout layout
}

// connection is an open state of the file. Beside a log it follows the log.
// With no log nobody writes, and the file is opened immutable: an ordinary
// read-only connection would make files beside it and leave them there.
type connection struct {
	pool *sql.DB
	seen mark

	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

// mark tells whether a file without a log is still the one that was opened.
type mark struct {
	logged  bool
	size    int64
	changed time.Time
}

func (r *Reader) mark() (mark, error) {
	if r.own || hasLog(r.path) || r.compat != "" && hasLog(r.compat) {
		return mark{logged: true}, nil
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return mark{}, fmt.Errorf("the store %s: %w", r.path, err)
	}
	return mark{size: info.Size(), changed: info.ModTime()}, nil
}

// maxLooks bounds how often a question is asked again because a broker came or
// left while it was answered.
const maxLooks = 5

// read runs ask with a view of the store. ask may run again and sets its
// results anew each time.
func (r *Reader) read(ctx context.Context, ask func(view) error) error {
	var stable bool
	var err error
	for range maxLooks {
		if stable, err = r.look(ctx, ask); stable || ctx.Err() != nil {
			break
		}
	}
	return ofArchive(r.path, storageError(r.path, err))
}

// look asks once. stable says that the answer, or its error, is of one state.
func (r *Reader) look(ctx context.Context, ask func(view) error) (stable bool, err error) {
	seen, err := r.mark()
	if err != nil {
		return true, err
	}
	if err := r.connect(seen); err != nil {
		return true, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.now.fits(seen) { // closed, or another question saw a newer state
		return r.closed, errClosed
	}
	v := view{r.now, fullLayout}
	if !r.own {
		v.layout, err = r.now.readLayout(ctx, r.path)
	}
	if err == nil {
		err = ask(v)
	}
	return r.stillAt(seen), err
}

// connect makes r.now fit the mark.
func (r *Reader) connect(seen mark) error {
	r.mu.RLock()
	fits := r.now.fits(seen)
	r.mu.RUnlock()
	if fits {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.now.fits(seen) {
		return nil
	}
	if err := r.disconnect(); err != nil {
		return err
	}
	params, beside := []string{"mode=ro", "_pragma=query_only(1)"}, "?mode=ro"
	if !seen.logged {
		params, beside = append(params, "immutable=1"), "?mode=ro&immutable=1"
	}
	pool := openAttached(dsn(r.path, params...), r.compat, beside)
	pool.SetMaxOpenConns(readConnections)
	pool.SetMaxIdleConns(readConnections)
	r.now = &connection{pool: pool, seen: seen, statements: map[string]*sql.Stmt{}}
	return nil
}

// fits reports whether c answers for the state of the mark. A connection that
// follows a log always does: it keeps the log from being taken away.
func (c *connection) fits(seen mark) bool { return c != nil && (c.seen.logged || c.seen == seen) }

func (r *Reader) stillAt(seen mark) bool {
	again, err := r.mark()
	return seen.logged || err == nil && again == seen
}

// layout says which tables the schema has; a Reader meets every version.
type layout struct{ messages, archive, stages, ways, peers, decisions, receipts, names, seen bool }

var fullLayout = layout{messages: true, archive: true, stages: true, ways: true, peers: true, decisions: true, receipts: true, names: true, seen: true}

func (c *connection) readLayout(ctx context.Context, path string) (layout, error) {
	var l layout
	names := map[string]*bool{
		"messages": &l.messages, "archived_messages": &l.archive, "delivery_stages": &l.stages, "delivery_ways": &l.ways, "message_peers_upto": &l.peers,
		"decisions": &l.decisions, "decision_deliveries": &l.receipts, "peer_names": &l.names, "peer_last_seen": &l.seen,
	}
	var version int
	rows, err := c.query(ctx, "SELECT name, user_version FROM pragma_user_version LEFT JOIN pragma_table_list ON type = 'table'")
	err = each(rows, err, func(rows *sql.Rows) error {
		var name sql.NullString
		if err := rows.Scan(&name, &version); err != nil {
			return err
		}
		if has := names[name.String]; has != nil {
			*has = true
		}
		return nil
	})
	if err == nil {
		err = found{version: version}.checkVersion(path)
	}
	return l, err
}

func (c *connection) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (c *connection) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if statement, ok := c.statements[query]; ok {
		return statement, nil
	}
	statement, err := c.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.statements[query] = statement
	return statement, nil
}

// rowError is a row that is not what it was asked as.
type rowError struct{ error }

func (e rowError) Error() string { return "reading a row: " + e.error.Error() }
func (e rowError) Unwrap() error { return e.error }

// each runs scan for every row of a query that may have failed, and closes it.
func each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return rowError{err}
		}
	}
	return rows.Err()
}

// union joins the given SELECTs into one query.
func union(selects []string) string { return strings.Join(selects, "\nUNION ALL\n") }
