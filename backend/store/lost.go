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
