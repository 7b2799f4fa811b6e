package sqlitex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"bridge/backend/core/bridge"
)

// maxLooks bounds how often a question is asked again because a broker came or
// left while it was answered.
const maxLooks = 5

// mark tells whether a file without a log is still the one that was opened.
type mark struct {
	logged  bool
	size    int64
	changed time.Time
}

// Quietly runs ask on a connection that leaves no trace. A file that changed
// meanwhile although nobody seemed to write is read again, with its writer.
func Quietly(ctx context.Context, path string, live bool, ask func(*sql.DB) error) error {
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
	pool, err := sql.Open("sqlite", DSN(path, params...))
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
		return fmt.Errorf("the driver %T cannot keep the log", driver)
	}
	_, err := control.FileControlPersistWAL("main", 1)
	return err
}
