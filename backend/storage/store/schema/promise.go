package schema

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
)

// The promise of a schema is read from the steps that create it, run on an empty database
// in memory (STO-18). A store is compared by shape, not by names: stores of other
// programs have the same tables, but their own names for keys and indexes.

// Lack is one thing that a database's version promises and that is missing.
type Lack struct {
	Kind  LackKind
	Table string
	Name  string // of the columns, of an index or trigger in Bridge's schema, the columns of a key
	// Kept is set if Bridge only keeps the table's data and never queries it: stores of
	// other programs may have other columns there.
	Kept bool

	SQL string // recreates it if that loses nothing, "" for a table or column
}

// LackKind is the kind of a missing thing.
type LackKind string

// The kinds of lacks.
const (
	LacksTable   LackKind = "table"
	LacksColumn  LackKind = "column"
	LacksKey     LackKind = "key"
	LacksIndex   LackKind = "index"
	LacksTrigger LackKind = "trigger"
)

// String names the missing thing for people.
func (l Lack) String() string {
	switch l.Kind {
	case LacksTable:
		return "the table " + l.Table
	case LacksColumn:
		if strings.Contains(l.Name, ", ") {
			return "the columns " + l.Name + " of the table " + l.Table
		}
		return "the column " + l.Table + "." + l.Name
	case LacksKey:
		return "the key (" + l.Name + ") of the table " + l.Table
	default:
		return "the " + string(l.Kind) + " " + l.Name + " of the table " + l.Table
	}
}

// Promise identifies the scripts that created a database.
type Promise string

// The databases with Bridge's own schema.
const (
	PrimaryStore Promise = "primary"
	ArchiveStore Promise = "archive"
	IndexStore   Promise = "search"
)

// otherKeys are scripts whose tables other programs' stores have with the same names and
// columns, but other keys. onlyKept are scripts whose columns Bridge never queries.
var (
	otherKeys = []string{"2", "4", "5", "6", "7", "8", "9"}
	onlyKept  = []string{"4", "8"}
)

// item is a table, column, key, index or trigger.
type item struct {
	Lack
	script  string
	columns string // of a key or an index: a, b; for a partial index followed by its condition
	unique  bool
	body    string // of a trigger, normalized
}

// schemaShape is the list of all items of a schema.
type schemaShape []item

// readShape reads the shape of the main database. It opens no virtual table, because one
// without its own tables cannot be opened.
func readShape(ctx context.Context, pool *sql.DB) (s schemaShape, err error) {
	const tables = `sqlite_schema t WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	const columns = `sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	for _, query := range []string{
		"SELECT 'table', t.name, '', '', false, ifnull(t.sql, '') FROM " + tables,
		"SELECT 'column', t.name, c.name, '', false, '' FROM " + columns,
		"SELECT 'key', t.name, '', group_concat(c.name, ', ' ORDER BY c.pk), true, '' FROM " + columns + " AND c.pk > 0 GROUP BY t.name",
		`SELECT iif(i.origin = 'c', 'index', 'key'), t.name, i.name, (SELECT group_concat(x.name, ', ' ORDER BY x.seqno) FROM pragma_index_info(i.name) x)
				|| iif(i.partial, ' ' || substr(s.sql, instr(upper(s.sql), ' WHERE ') + 1), ''), i."unique", ifnull(s.sql, '')
			FROM sqlite_schema t, pragma_index_list(t.name) i LEFT JOIN sqlite_schema s ON s.type = 'index' AND s.name = i.name
			WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%'`,
		"SELECT 'trigger', t.tbl_name, t.name, '', false, t.sql FROM sqlite_schema t WHERE t.type = 'trigger'",
	} {
		rows, err := pool.QueryContext(ctx, query)
		err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var element item
			err := rows.Scan((*string)(&element.Kind), &element.Table, &element.Name, sqlitex.Text(&element.columns), &element.unique, &element.SQL)
			if element.Kind == LacksKey {
				element.Name = element.columns
			}
			element.body = triggerBody(element)
			s = append(s, element)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

var (
	triggerName = regexp.MustCompile(`^create trigger ("[^"]*"|\S+) `)
	refusal     = regexp.MustCompile(`raise ?\( ?(abort|fail|rollback) ?,[^)]*\)`)
	quoting     = strings.NewReplacer(`"`, "", "`", "", "[", "", "]", "", "for each row ", "")
)

// triggerBody returns the normalized action of a trigger, without its name and the texts
// of its refusals.
func triggerBody(element item) string {
	if element.Kind != LacksTrigger {
		return ""
	}
	plain := strings.Join(strings.Fields(strings.ToLower(element.SQL)), " ")
	return refusal.ReplaceAllString(quoting.Replace(triggerName.ReplaceAllString(plain, "")), "refuse")
}

// has reports whether the shape has an item equivalent to the promised one.
func (s schemaShape) has(want item) bool {
	return slices.ContainsFunc(s, func(element item) bool {
		if element.Table != want.Table {
			return false
		}
		isIndex := element.Kind == LacksKey || element.Kind == LacksIndex
		switch want.Kind {
		case LacksTable:
			return element.Kind == LacksTable
		case LacksColumn:
			return element.Kind == LacksColumn && element.Name == want.Name
		case LacksTrigger:
			return element.body == want.body
		default: // a key or an index
		}
		if want.unique {
			return isIndex && element.unique && element.columns == want.columns
		}
		return isIndex && strings.HasPrefix(element.columns+", ", want.columns+", ")
	})
}

// scriptsOf returns the scripts that created a database.
func scriptsOf(promise Promise, version int) (scripts []string) {
	if promise != PrimaryStore {
		return []string{string(promise)}
	}
	for step := 1; step <= max(version, 1); step++ {
		scripts = append(scripts, fmt.Sprint(step))
	}
	if version == Version {
		scripts = append(scripts, LaterParts()...)
	}
	return scripts
}

// promised returns the shape that the scripts create, each item with its script.
func promised(ctx context.Context, scripts []string) (shape schemaShape, err error) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, name := range scripts {
		text, err := Script(name)
		if err == nil {
			_, err = pool.ExecContext(ctx, text)
		}
		if err != nil {
			return nil, fmt.Errorf("schema step %s: %w", name, err)
		}
		now, err := readShape(ctx, pool)
		if err != nil {
			return nil, err
		}
		for _, item := range now {
			if !shape.has(item) {
				item.script = name
				shape = append(shape, item)
			}
		}
	}
	return shape, nil
}

// WholePrimary returns the shape of a store of the newest version.
var WholePrimary = sync.OnceValues(func() (schemaShape, error) {
	return promised(context.Background(), scriptsOf(PrimaryStore, Version))
})

// lacking returns what a shape lacks of a promise, without items that await an upgrade.
func (s schemaShape) lacking(promise schemaShape, awaited func(item) bool) (missing []Lack) {
	missingTables := map[string]bool{}
	for _, want := range promise {
		switch {
		case missingTables[want.Table], s.has(want), awaited(want):
		case want.Kind == LacksKey && slices.Contains(otherKeys, want.script):
		default:
			missingTables[want.Table] = want.Kind == LacksTable
			missing = append(missing, want.lack())
		}
	}
	slices.SortStableFunc(missing, func(a, b Lack) int { return cmp.Compare(a.Table, b.Table) })
	return joinColumns(missing)
}

// joinColumns merges the missing columns of a table into one lack.
func joinColumns(missing []Lack) (joined []Lack) {
	for _, lack := range missing {
		last := len(joined) - 1
		if last >= 0 && lack.Kind == LacksColumn && joined[last].Kind == LacksColumn && joined[last].Table == lack.Table {
			joined[last].Name += ", " + lack.Name
			continue
		}
		joined = append(joined, lack)
	}
	return joined
}

func (want item) lack() Lack {
	lack := want.Lack
	lack.Kept = slices.Contains(onlyKept, want.script)
	switch lack.Kind {
	case LacksTable:
		lack.SQL = ""
	case LacksKey:
		lack.SQL = fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (%s)", sqlitex.QuoteName(want.Table+"_key"), want.Table, want.columns)
	default: // its own statement creates it
	}
	return lack
}

// Lacks returns what the database at path lacks of its version's promise. It reads the
// file like Inspect. A database that is empty or newer lacks nothing. It fails with
// Storage if the file cannot be read.
func Lacks(ctx context.Context, path string, promise Promise, live bool) (missing []Lack, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		missing, err = MissingFrom(ctx, pool, promise)
		return err
	})
	return missing, sqlitex.Error(path, err)
}

// MissingFrom is [Lacks] for an open database. It does not change the database. It fails with
// SQLite's error if the database cannot be read.
func MissingFrom(ctx context.Context, pool *sql.DB, promise Promise) ([]Lack, error) {
	is, tables, err := Read(ctx, pool)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	want := schemaShape(nil)
	switch {
	case promise != PrimaryStore:
		want, err = promised(ctx, scriptsOf(promise, 0))
	case is.Version == Version:
		want, err = WholePrimary()
	case is.Version < Version:
		want, err = promised(ctx, scriptsOf(promise, is.Version))
	}
	if err != nil {
		return nil, err
	}
	now, err := readShape(ctx, pool)
	return now.lacking(want, func(element item) bool { return promise == PrimaryStore && is.awaits(element) }), err
}

// awaits reports whether an upgrade adds the item. Before it a store has only the tables
// of its steps, with other keys and indexes.
func (f Found) awaits(element item) bool {
	if f.Remote < RemoteVersion && element.script == "remote" || !f.Team && element.script == "team" || !f.Withdrawn && element.script == "withdrawn" {
		return true
	}
	if f.Version < Version || f.Deliveries < DeliveriesVersion {
		return !element.IsData() || element.script == "deliveries"
	}
	return !f.Ways && element.Table == "delivery_ways"
}

// IsData reports whether the missing thing held data, so that it cannot be rebuilt
// without loss.
func (l Lack) IsData() bool { return l.Kind == LacksTable || l.Kind == LacksColumn }

// RequireWhole fails with Storage for a store that lost tables or columns.
func RequireWhole(ctx context.Context, path string) error {
	missing, err := Lacks(ctx, path, PrimaryStore, true)
	if err != nil {
		return err
	}
	for _, lack := range missing {
		if lack.IsData() && !lack.Kept {
			return bridge.Errorf(bridge.Storage, "the store %s lacks %s: restore a snapshot with `bridge doctor --restore latest` first", path, lack)
		}
	}
	return nil
}
