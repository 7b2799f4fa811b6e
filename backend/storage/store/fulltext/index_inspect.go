package fulltext

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/platform/sqlitex"
)

// State is the state of a search index, for people.
type State struct {
	Version int    // of the index; 0 if history.db has none
	Newest  int    // the newest version that this build knows
	Behind  int64  // rows that are not indexed yet
	Torn    string // the damage of the index, "" for none
	Archive int64  // the last indexed row id of archive.db, 0 if there never was one
}

// Inspect inspects the index in history, which belongs to the store at primary and to
// that archive. It leaves all files unchanged, like transfer.Inspect. It fails with
// Storage if a file is unreadable. A damaged index does not make it fail.
func Inspect(ctx context.Context, history, primary, archive string, live bool) (State, error) {
	state := State{Newest: searchVersion}
	upto := map[string]int64{}
	err := sqlitex.Quietly(ctx, history, live, func(pool *sql.DB) error {
		names, err := sqlitex.Texts(ctx, pool, "SELECT name FROM sqlite_schema WHERE type = 'table'")
		if err != nil {
			return err
		}
		if state.Version, err = indexVersion(ctx, pool, names); err == nil && state.Version == searchVersion {
			err = torn(ctx, pool)
		}
		var broken damagedIndex
		if errors.As(err, &broken) {
			state.Torn = broken.why
			return nil
		}
		if err != nil || state.Version != searchVersion {
			return err
		}
		rows, err := pool.QueryContext(ctx, "SELECT source, row FROM search_upto")
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var name string
			var row int64
			err := rows.Scan(sqlitex.Text(&name), &row)
			upto[name] = row
			return err
		})
	})
	if err != nil || state.Version == 0 || state.Torn != "" {
		return state, sqlitex.Error(history, err)
	}
	for _, from := range sources {
		path := primary
		if from.archive {
			path, state.Archive = archive, upto[from.name]
		}
		last, err := lastRow(ctx, path, from, live)
		if err != nil {
			return state, sqlitex.Error(path, err)
		}
		state.Behind += max(0, last-upto[from.name])
	}
	return state, nil
}

// lastRow returns the last row id of a source, 0 if it has no rows.
func lastRow(ctx context.Context, path string, from source, live bool) (row int64, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		names, err := sqlitex.Texts(ctx, pool, "SELECT name FROM sqlite_schema WHERE type = 'table'")
		if err != nil || !slices.Contains(names, from.table) {
			return err
		}
		var last sql.NullInt64
		err = pool.QueryRowContext(ctx, from.last).Scan(&last)
		row = last.Int64
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return row, err
}
