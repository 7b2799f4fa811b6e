package sqlitex

import (
	"context"
	"database/sql"
	"strings"
)

// Querier runs a query on a read state or in the transaction of a write.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// OnPool returns a Querier on a pool of connections.
func OnPool(pool *sql.DB) Querier { return onPool{pool} }

type onPool struct{ *sql.DB }

// Query runs a query (Querier). It fails with SQLite's error, or if ctx ends.
func (p onPool) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.QueryContext(ctx, query, args...)
}

// RowError reports a row that could not be scanned.
type RowError struct{ error }

func (e RowError) Error() string { return "reading a row: " + e.error.Error() }

// Unwrap returns the error of the scan.
func (e RowError) Unwrap() error { return e.error }

// Each runs scan for every row and closes rows. It fails with err or a [RowError].
func Each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return RowError{err}
		}
	}
	return rows.Err()
}

// UnionAll joins the given SELECTs into one query.
func UnionAll(selects []string) string { return strings.Join(selects, "\nUNION ALL\n") }

// Texts runs a query of one text column and returns its values. It fails with
// SQLite's error, or with a [RowError] for NULL.
func Texts(ctx context.Context, pool *sql.DB, query string, args ...any) ([]string, error) {
	var found []string
	rows, err := pool.QueryContext(ctx, query, args...)
	err = Each(rows, err, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		found = append(found, line)
		return err
	})
	return found, err
}

// QuoteName quotes the name of a table or column for SQL.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
