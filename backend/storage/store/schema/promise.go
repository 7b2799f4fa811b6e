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

// What a schema promises is read from the steps that make it, run on an empty
// database in memory (STO-18). A store is compared by shape and not by names: one
// from the field has the same tables, and its own names for keys and indexes.

// Lack is one thing that a database's version promises and that is not there.
type Lack struct {
	Kind  LackKind
	Table string
	Name  string // of the columns, of an index or trigger as Bridge calls it, the columns of a key
	// Kept says that Bridge only keeps what is in the table and asks it nothing:
	// stores from the field may have other columns there.
	Kept bool

	SQL string // makes it anew where that loses nothing, "" for a table or column
}

// LackKind is what is lacking.
type LackKind string

// The kinds of lacks.
const (
	LacksTable   LackKind = "table"
	LacksColumn  LackKind = "column"
	LacksKey     LackKind = "key"
	LacksIndex   LackKind = "index"
	LacksTrigger LackKind = "trigger"
)

// String names what is lacking for people.
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

// Promise names what a database was made by.
type Promise string

// The databases whose schema is Bridge's own.
const (
	PrimaryStore Promise = "primary"
	ArchiveStore Promise = "archive"
	IndexStore   Promise = "search"
)

// Scripts whose tables stores of the field have by the same names and columns, but
// with keys of their own, and those whose columns nothing here asks for.
var (
	otherKeys = []string{"2", "4", "5", "6", "7", "8", "9"}
	onlyKept  = []string{"4", "8"}
)

// item is a table, column, key, index or trigger.
type item struct {
	Lack
	script  string
	columns string // of a key or an index: a, b; of a partial one with its condition behind them
	unique  bool
	body    string // of a trigger, in one form
}

// schemaShape is everything that a schema has.
type schemaShape []item

// readShape reads the shape of the main database. It asks no virtual table: one
// whose own tables are gone cannot be opened.
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
			var one item
			err := rows.Scan((*string)(&one.Kind), &one.Table, &one.Name, sqlitex.Text(&one.columns), &one.unique, &one.SQL)
			if one.Kind == LacksKey {
				one.Name = one.columns
			}
			one.body = triggerBody(one)
			s = append(s, one)
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

// triggerBody is what a trigger does, without its name and the words that it
// refuses with.
func triggerBody(one item) string {
	if one.Kind != LacksTrigger {
		return ""
	}
	plain := strings.Join(strings.Fields(strings.ToLower(one.SQL)), " ")
	return refusal.ReplaceAllString(quoting.Replace(triggerName.ReplaceAllString(plain, "")), "refuse")
}

// has reports whether the shape holds what does the same as the promised item.
func (s schemaShape) has(want item) bool {
	return slices.ContainsFunc(s, func(one item) bool {
		if one.Table != want.Table {
			return false
		}
		isIndex := one.Kind == LacksKey || one.Kind == LacksIndex
		switch want.Kind {
		case LacksTable:
			return one.Kind == LacksTable
		case LacksColumn:
			return one.Kind == LacksColumn && one.Name == want.Name
		case LacksTrigger:
			return one.body == want.body
		default: // a key or an index
		}
		if want.unique {
			return isIndex && one.unique && one.columns == want.columns
		}
		return isIndex && strings.HasPrefix(one.columns+", ", want.columns+", ")
	})
}

// scriptsOf are the scripts that made a database.
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

// promised is the shape that the scripts make, each item with its script.
func promised(ctx context.Context, scripts []string) (whole schemaShape, err error) {
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
		for _, one := range now {
			if !whole.has(one) {
				one.script = name
				whole = append(whole, one)
			}
		}
	}
	return whole, nil
}

// WholePrimary is what a store of the newest version promises.
var WholePrimary = sync.OnceValues(func() (schemaShape, error) {
	return promised(context.Background(), scriptsOf(PrimaryStore, Version))
})

// lacking compares a shape with a promise, without what awaits its upgrade.
func (s schemaShape) lacking(promise schemaShape, awaited func(item) bool) (lacks []Lack) {
	gone := map[string]bool{}
	for _, want := range promise {
		switch {
		case gone[want.Table], s.has(want), awaited(want):
		case want.Kind == LacksKey && slices.Contains(otherKeys, want.script):
		default:
			gone[want.Table] = want.Kind == LacksTable
			lacks = append(lacks, want.lack())
		}
	}
	slices.SortStableFunc(lacks, func(a, b Lack) int { return cmp.Compare(a.Table, b.Table) })
	return joinColumns(lacks)
}

// joinColumns makes one lack of all the columns of a table.
func joinColumns(lacks []Lack) (joined []Lack) {
	for _, lack := range lacks {
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
	default: // its own statement makes it
	}
	return lack
}

// Lacks says what the database at path lacks of what its version promises, read
// like Inspect. A database that is empty, newer, or not of the kind lacks nothing.
func Lacks(ctx context.Context, path string, promise Promise, live bool) (lacks []Lack, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		lacks, err = LacksOf(ctx, pool, promise)
		return err
	})
	return lacks, sqlitex.Error(path, err)
}

func LacksOf(ctx context.Context, pool *sql.DB, promise Promise) ([]Lack, error) {
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
	return now.lacking(want, func(one item) bool { return promise == PrimaryStore && is.awaits(one) }), err
}

// awaits reports whether an upgrade brings the item: before it a store has the
// tables of its steps alone, with keys and indexes of its own.
func (f Found) awaits(one item) bool {
	if f.Remote < RemoteVersion && one.script == "remote" || !f.Team && one.script == "team" || !f.Withdrawn && one.script == "withdrawn" {
		return true
	}
	if f.Version < Version || f.Deliveries < DeliveriesVersion {
		return !one.IsData() || one.script == "deliveries"
	}
	return !f.Ways && one.Table == "delivery_ways"
}

// IsData reports whether what is lacking held something, so that it cannot be
// rebuilt as if nothing had happened.
func (l Lack) IsData() bool { return l.Kind == LacksTable || l.Kind == LacksColumn }

// RequireWhole refuses work on a store that lost tables or columns.
func RequireWhole(ctx context.Context, path string) error {
	lacks, err := Lacks(ctx, path, PrimaryStore, true)
	if err != nil {
		return err
	}
	for _, lack := range lacks {
		if lack.IsData() && !lack.Kept {
			return bridge.Errorf(bridge.Storage, "the store %s lacks %s: restore a snapshot with `bridge doctor --restore latest` first", path, lack)
		}
	}
	return nil
}
