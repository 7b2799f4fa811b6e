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

// maxLooks bounds how often a read is retried because a broker started or stopped
// meanwhile.
const maxLooks = 5

// mark identifies the state of a file without a log.
type mark struct {
	logged  bool
	size    int64
	changed time.Time
}

// Quietly runs ask on a connection that leaves no trace. If the file changes meanwhile, it
// retries and then assumes a live writer. It fails with Storage if the file keeps changing.
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

// fileMark identifies the state of a database and its log.
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

// openQuietly opens path in the one mode of three that fits:
//   - with a live writer, an ordinary read-only connection: the log's files
//     already exist, and the log belongs to the state;
//   - without a log, immutable: an ordinary read-only connection would create
//     files next to the database and leave them there;
//   - with the log of a dead writer, exclusive and without locks: SQLite then
//     builds the log's index in memory and not in a file.
//
// The file is mapped into memory. A scan of a whole database mostly reads pages,
// and one system call for each page costs as much as the scan.
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
	pool.SetMaxOpenConns(1) // settings of the connection then hold for the pool
	if abandoned {
		if err := onConnection(ctx, pool, keepLog); err != nil {
			return err
		}
	}
	return withoutFaults(func() error { return ask(pool) })
}

// mappedBytes returns how many bytes of a file may be mapped. It is 0 on Windows,
// where a mapped file cannot be replaced.
func mappedBytes() int64 {
	if runtime.GOOS == "windows" {
		return 0
	}
	return 1 << 40
}

// withoutFaults turns the fault of an unreadable mapped page into a Storage error.
// Without it the process would end.
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

// lockless returns the name of SQLite's file access without locks.
func lockless() string {
	if runtime.GOOS == "windows" {
		return "win32-none"
	}
	return "unix-none"
}

// keepLog makes the connection keep the log when it closes.
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
