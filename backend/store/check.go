package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"bridge/backend/bridge"
)

// SmallestDatabase is how many bytes a database has at least: one page.
const SmallestDatabase = 512

// Inspection is what a look through one whole database file found (STO-01).
type Inspection struct {
	Version    int      // user_version
	Tables     []string // names, sorted
	Upgraded   bool     // a primary store has all that this build adds
	Problems   []string // integrity_check's lines; none when the file is sound
	References []string // foreign_key_check's rows in words
	// Foreign says why the file is no primary store; nil for one that is, or is
	// still empty. It means nothing for the other databases.
	Foreign error
}

// Inspect reads the whole database at path and leaves the file and everything
// beside it as they are, to the byte and the time. live says that a process
// may be writing: then a log is shared with it. An error means that the file
// could not be read as a database at all.
func Inspect(ctx context.Context, path string, live bool) (Inspection, error) {
	var seen Inspection
	err := quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		if seen, err = glance(ctx, path, pool); err != nil {
			return err
		}
		if seen.Problems, err = integrity(ctx, pool, seen.Tables); err != nil {
			return err
		}
		seen.References, err = lines(ctx, pool, `SELECT 'a row of ' || "table" || ' names a missing row of ' || parent FROM pragma_foreign_key_check LIMIT 100`)
		return err
	})
	return seen, storageError(path, err)
}

// Glance is Inspect without the reading of the whole file: what version and
// tables it has. Problems and References stay empty.
func Glance(ctx context.Context, path string, live bool) (Inspection, error) {
	var seen Inspection
	err := quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		seen, err = glance(ctx, path, pool)
		return err
	})
	return seen, storageError(path, err)
}

func glance(ctx context.Context, path string, pool *sql.DB) (Inspection, error) {
	found, tables, err := readSchema(ctx, pool)
	if err != nil {
		return Inspection{}, err
	}
	return Inspection{
		Version: found.version, Foreign: checkOurs(path, found, tables), Upgraded: found.isUpgraded(), Tables: slices.Sorted(maps.Keys(tables)),
	}, nil
}

// integrity runs SQLite's integrity check. Beside a search index it checks table
// by table: the lists of words are then read as pages and rows, but not word by
// word, which would take longer than all the rest and guard what can be made anew.
func integrity(ctx context.Context, pool *sql.DB, tables []string) (problems []string, err error) {
	const found = " WHERE integrity_check <> 'ok'"
	if !slices.Contains(tables, "search_words_data") {
		return lines(ctx, pool, "SELECT integrity_check FROM pragma_integrity_check"+found)
	}
	for _, table := range tables {
		some, err := lines(ctx, pool, "SELECT integrity_check FROM pragma_integrity_check(?1)"+found, table)
		if err != nil {
			return nil, err
		}
		problems = append(problems, some...)
	}
	return problems, nil
}

// Counts returns the number of rows of every table of the database at path,
// read like Inspect.
func Counts(ctx context.Context, path string, live bool) (counts map[string]int, err error) {
	err = quietly(ctx, path, live, func(pool *sql.DB) error {
		counts = map[string]int{}
		names, err := lines(ctx, pool, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
			AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
		if err != nil {
			return err
		}
		for _, name := range names {
			var count int
			if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM "+quoteName(name)).Scan(&count); err != nil {
				return err
			}
			counts[name] = count
		}
		return nil
	})
	return counts, storageError(path, err)
}

// quietly runs ask on a connection that leaves no trace. A file that changed
// meanwhile although nobody seemed to write is read again, with its writer.
func quietly(ctx context.Context, path string, live bool, ask func(*sql.DB) error) error {
	for range maxLooks {
		before, err := markOf(path)
		if err != nil {
			return err
		}
		shared := live && before.log.logged
		err = openQuietly(ctx, path, before, shared, ask)
		after, markErr := markOf(path)
		if shared || markErr == nil && before == after || ctx.Err() != nil {
			return err
		}
		live = true
	}
	return bridge.Errorf(bridge.Storage, "the store %s kept changing while it was read", path)
}

// fileMark tells whether a database or its log changed.
type fileMark struct{ file, log mark }

func markOf(path string) (marks fileMark, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return marks, err
	}
	marks.file = mark{size: info.Size(), changed: info.ModTime()}
	info, err = os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return marks, nil
	}
	if err != nil {
		return marks, err
	}
	marks.log = mark{logged: true, size: info.Size(), changed: info.ModTime()}
	return marks, nil
}

// openQuietly opens path in the one way that fits:
//   - shared with a live writer an ordinary read-only connection: the files
//     beside the database are there already, and the log belongs to the state;
//   - without a log immutable, because an ordinary read-only connection makes
//     files beside the database and leaves them there;
//   - with a log that a dead writer left, exclusive and without locks: the log's
//     index is then built in memory and not in a file.
//
// The file is mapped into memory: looking through a whole database is mostly
// reading pages, and a call of the system for each costs as much as looking.
func openQuietly(ctx context.Context, path string, seen fileMark, shared bool, ask func(*sql.DB) error) error {
	params := []string{"mode=ro", "_pragma=query_only(1)", fmt.Sprintf("_pragma=mmap_size(%d)", mappedBytes())}
	abandoned := !shared && seen.log.size > 0
	switch {
	case abandoned:
		params = append(params, "vfs="+lockless(), "_pragma=locking_mode(EXCLUSIVE)")
	case !shared:
		params = append(params, "immutable=1")
	}
	pool, err := sql.Open("sqlite", dsn(path, params...))
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1) // what is set on the connection holds for the pool
	if abandoned {
		if err := onConnection(ctx, pool, keepLog); err != nil {
			return err
		}
	}
	return withoutFaults(func() error { return ask(pool) })
}

// mappedBytes is how much of a file may be mapped: none on Windows, where nobody
// could replace a file that is.
func mappedBytes() int64 {
	if runtime.GOOS == "windows" {
		return 0
	}
	return 1 << 40
}

// withoutFaults turns the fault of a mapped page that the disk does not give
// into an error; without it the process would end.
func withoutFaults(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if _, ours := fault.(interface{ Addr() uintptr }); !ours {
			panic(fault)
		}
		err = bridge.WithCause(bridge.Storage, fmt.Errorf("fault: %v", fault), "a page could not be read: the disk reports an error")
	}()
	return work()
}

func onConnection(ctx context.Context, pool *sql.DB, work func(driver any) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(conn.Raw(work), conn.Close())
}

// lockless names SQLite's file access without locks.
func lockless() string {
	if runtime.GOOS == "windows" {
		return "win32-none"
	}
	return "unix-none"
}

// keepLog forbids the connection to take the log away when it closes.
func keepLog(driver any) error {
	control, ok := driver.(interface {
		FileControlPersistWAL(string, int) (int, error)
	})
	if !ok {
		return fmt.Errorf("the driver %T can not keep the log", driver)
	}
	_, err := control.FileControlPersistWAL("main", 1)
	return err
}

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
