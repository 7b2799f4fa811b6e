package store

import (
	"context"
	"database/sql"
	"slices"

	"bridge/backend/sqlitex"
)

// HasRows reports whether one of the tables that says picks has a row in the
// database at path, which is read like by Inspect.
func HasRows(ctx context.Context, path string, live bool, says func(table string) bool) (has bool, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		names, err := sqlitex.Texts(ctx, pool, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND sql NOT LIKE 'CREATE VIRTUAL%'`)
		if err != nil {
			return err
		}
		for _, name := range slices.DeleteFunc(names, func(name string) bool { return !says(name) }) {
			if err := pool.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+sqlitex.QuoteName(name)+")").Scan(&has); err != nil || has {
				return err
			}
		}
		return nil
	})
	return has, sqlitex.Error(path, err)
}

// DropIndex takes the search index out of the history.db at path, which nobody
// has open, and leaves whatever else it holds. The next DB makes the index anew.
// The caller has a copy of the file.
func DropIndex(ctx context.Context, path string) error {
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_txlock=immediate", "_pragma=synchronous(FULL)"))
	if err != nil {
		return sqlitex.Error(path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	_, err = pool.ExecContext(ctx, `BEGIN IMMEDIATE;
		DROP TABLE IF EXISTS search_words; DROP TABLE IF EXISTS search_documents; DROP TABLE IF EXISTS search_upto;
		DROP TABLE IF EXISTS search_groups; DROP TABLE IF EXISTS search_grams;
		DELETE FROM bridge_components WHERE name = 'search'; COMMIT`)
	return sqlitex.Error(path, err)
}
