package store

import (
	"context"
	"database/sql"
	"strings"
)

// asker runs a query: a view, or the transaction of a write.
type asker interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// poolAsker asks a pool of connections.
type poolAsker struct{ *sql.DB }

func (p poolAsker) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.QueryContext(ctx, query, args...)
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

// lines runs a query of one text column.
func lines(ctx context.Context, pool *sql.DB, query string, args ...any) ([]string, error) {
	var found []string
	rows, err := pool.QueryContext(ctx, query, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		found = append(found, line)
		return err
	})
	return found, err
}

// quoteName writes the name of a table or column for SQL.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
