package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// readConnections bounds how many questions are answered at once.
const readConnections = 4

// Reader answers questions from bridge.db and can not change it: its
// connections are read-only and it has no method that writes (DEC-19). It works
// beside a live broker and with none, on every schema version up to
// SchemaVersion: what an older one lacks is an empty list.
type Reader struct {
	path string
	pool *sql.DB
	full bool // the schema is known to be whole

	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

// OpenReader opens the store at path for reading. It migrates nothing. With no
// file errors.Is(err, fs.ErrNotExist); a newer or foreign file is
// bridge.Unsupported.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := inspect(ctx, path); err != nil {
		return nil, err
	}
	reader := newReader(path)
	reader.full = false
	return reader, nil
}

// newReader opens the reading side of a store whose schema is in force.
func newReader(path string) *Reader {
	pool, err := sql.Open("sqlite", dsn(path, "mode=ro", "_pragma=query_only(1)"))
	if err != nil {
		panic(err) // only an unregistered driver: store.go imports it
	}
	pool.SetMaxOpenConns(readConnections)
	pool.SetMaxIdleConns(readConnections)
	return &Reader{path: path, pool: pool, full: true, statements: map[string]*sql.Stmt{}}
}

// Close closes the reader's connections.
func (r *Reader) Close() error {
	return r.pool.Close()
}

// asker runs a query: a Reader's view, or the transaction of a write.
type asker interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// view is what one question sees.
type view struct {
	reader *Reader
	layout layout
}

// layout says which tables the schema has; a Reader meets every version.
type layout struct{ messages, archive, stages, peers, decisions, receipts, names, seen bool }

var fullLayout = layout{messages: true, archive: true, stages: true, peers: true, decisions: true, receipts: true, names: true, seen: true}

// read runs ask with a view of the store. ask sets its results anew each time.
func (r *Reader) read(ctx context.Context, ask func(view) error) error {
	v := view{reader: r, layout: fullLayout}
	if !r.full {
		found, err := readLayout(ctx, r)
		if err != nil {
			return storageError(r.path, err)
		}
		v.layout = found
	}
	return storageError(r.path, ask(v))
}

func readLayout(ctx context.Context, r *Reader) (layout, error) {
	var l layout
	names := map[string]*bool{
		"messages": &l.messages, "archived_messages": &l.archive, "delivery_stages": &l.stages, "message_peers_upto": &l.peers,
		"decisions": &l.decisions, "decision_deliveries": &l.receipts, "peer_names": &l.names, "peer_last_seen": &l.seen,
	}
	rows, err := (view{reader: r}).query(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table'")
	err = each(rows, err, func(rows *sql.Rows) error {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if has := names[name]; has != nil {
			*has = true
		}
		return nil
	})
	return l, err
}

func (v view) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := v.reader.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (r *Reader) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if statement, ok := r.statements[query]; ok {
		return statement, nil
	}
	statement, err := r.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	r.statements[query] = statement
	return statement, nil
}

// each runs scan for every row of a query that may have failed, and closes it.
func each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("reading a row: %w", err)
		}
	}
	return rows.Err()
}

// union joins the given SELECTs into one query.
func union(selects []string) string { return strings.Join(selects, "\nUNION ALL\n") }
