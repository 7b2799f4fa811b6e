package transfer

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Inspection is the result of an inspection of a whole database file (STO-01).
type Inspection struct {
	Version    int      // user_version
	Tables     []string // names, sorted
	Upgraded   bool     // a primary store has everything that this build adds
	Problems   []string // lines of integrity_check; none if the file is sound
	References []string // rows of foreign_key_check as sentences
	// Foreign is why the file is no primary store; nil if it is one or is still empty. It
	// has no meaning for the other databases.
	Foreign error
}

// Inspect reads the whole database at path. It leaves the file and its folder unchanged,
// including bytes and times. live is set if a process may be writing: then Inspect shares
// a log with it. It fails if the file cannot be read as a database.
func Inspect(ctx context.Context, path string, live bool) (Inspection, error) {
	var seen Inspection
	err := sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		if seen, err = quickInspect(ctx, path, pool); err != nil {
			return err
		}
		if seen.Problems, err = integrity(ctx, pool, seen.Tables); err != nil {
			return err
		}
		seen.References, err = sqlitex.Texts(ctx, pool, `SELECT 'a row of ' || "table" || ' names a missing row of ' || parent FROM pragma_foreign_key_check LIMIT 100`)
		return err
	})
	return seen, sqlitex.Error(path, err)
}

// QuickInspect is Inspect without reading the whole file: it returns version and tables,
// and as Problems only what QuickVerify finds. References stays empty. It fails with Storage
// if the file is unreadable.
func QuickInspect(ctx context.Context, path string, live bool) (Inspection, error) {
	var seen Inspection
	err := sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		if seen, err = quickInspect(ctx, path, pool); err == nil {
			seen.Problems, err = quickVerify(ctx, pool)
		}
		return err
	})
	return seen, sqlitex.Error(path, err)
}

// quickVerify reads the first and the last row of each table and of each index. It returns
// a sentence for each of them whose pages are damaged there.
func quickVerify(ctx context.Context, pool *sql.DB) (problems []string, err error) {
	for _, item := range []struct{ sort, list string }{{"table", ordinaryTables}, {"index", ordinaryIndexes}} {
		lines, err := sqlitex.Texts(ctx, pool, item.list)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			name, source, _ := strings.Cut(line, "\x00")
			if canRead(ctx, pool, source+" LIMIT 1") && canRead(ctx, pool, source+" DESC LIMIT 1") {
				continue
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			problems = append(problems, item.sort+" "+name+" cannot be read")
		}
	}
	return problems, nil
}

// canRead reports whether the query meets no damage. A query that SQLite refuses for
// another reason reads nothing.
func canRead(ctx context.Context, pool *sql.DB, query string) bool {
	rows, err := pool.QueryContext(ctx, query)
	return !sqlitex.IsDamage(sqlitex.Each(rows, err, func(*sql.Rows) error { return nil }))
}

// ordinaryTables and ordinaryIndexes select a name and, after a zero character, the query of
// its rows in the order of its pages.
const (
	ordinaryTables = `SELECT t.name || char(0) || 'SELECT * FROM ' || printf('"%w"', t.name) || ' ORDER BY ' || CASE t.wr WHEN 0 THEN 'rowid'
			ELSE (SELECT printf('"%w"', c.name) FROM pragma_table_info(t.name) c WHERE c.pk = 1) END
		FROM pragma_table_list t WHERE t.schema = 'main' AND t.type IN ('table', 'shadow') ORDER BY t.name`
	ordinaryIndexes = `SELECT s.name || char(0) || 'SELECT 1 FROM ' || printf('"%w"', s.tbl_name) || ' INDEXED BY ' || printf('"%w"', s.name)
			|| ifnull(substr(s.sql, nullif(instr(s.sql, ' WHERE '), 0)), '') || ' ORDER BY ' || printf('"%w"', c.name)
		FROM sqlite_schema s, pragma_index_info(s.name) c WHERE s.type = 'index' AND c.seqno = 0 AND c.name IS NOT NULL ORDER BY s.name`
)

func quickInspect(ctx context.Context, path string, pool *sql.DB) (Inspection, error) {
	found, tables, err := schema.Read(ctx, pool)
	if err != nil {
		return Inspection{}, err
	}
	return Inspection{
		Version: found.Version, Foreign: schema.CheckOurs(path, found, tables), Upgraded: found.IsUpgraded(), Tables: slices.Sorted(maps.Keys(tables)),
	}, nil
}

// integrity runs SQLite's integrity check. If there is a search index, it checks table by
// table. The word lists are then checked as pages and rows, but not word by word. That
// would take longer than all the rest, and the index can be rebuilt.
func integrity(ctx context.Context, pool *sql.DB, tables []string) (problems []string, err error) {
	const found = " WHERE integrity_check <> 'ok'"
	if !slices.Contains(tables, "search_words_data") {
		return sqlitex.Texts(ctx, pool, "SELECT integrity_check FROM pragma_integrity_check"+found)
	}
	for _, table := range tables {
		some, err := sqlitex.Texts(ctx, pool, "SELECT integrity_check FROM pragma_integrity_check(?1)"+found, table)
		if err != nil {
			return nil, err
		}
		problems = append(problems, some...)
	}
	return problems, nil
}

// Counts returns the number of rows of every table of the database at path. It reads the
// file like Inspect, and fails with Storage if the file is unreadable.
func Counts(ctx context.Context, path string, live bool) (counts map[string]int, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		counts = map[string]int{}
		names, err := sqlitex.Texts(ctx, pool, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
			AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
		if err != nil {
			return err
		}
		for _, name := range names {
			var count int
			if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM "+sqlitex.QuoteName(name)).Scan(&count); err != nil {
				return err
			}
			counts[name] = count
		}
		return nil
	})
	return counts, sqlitex.Error(path, err)
}

// HasRows reports whether one of the tables that says selects has a row in the database
// at path. It reads the file like Inspect, and fails with Storage if the file is
// unreadable.
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
