package sqlitex

import (
	"context"
	"database/sql"
	"strings"
)

// Querier runs a query: a state that is read, or the transaction of a write.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// OnPool asks a pool of connections.
func OnPool(pool *sql.DB) Querier { return onPool{pool} }

type onPool struct{ *sql.DB }

func (p onPool) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.QueryContext(ctx, query, args...)
}

// RowError is a row that is not what it was asked as.
type RowError struct{ error }

func (e RowError) Error() string { return "reading a row: " + e.error.Error() }
func (e RowError) Unwrap() error { return e.error }

// Each runs scan for every row of a query that may have failed, and closes it.
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

// Texts runs a query of one text column.
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

// QuoteName writes the name of a table or column for SQL.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
