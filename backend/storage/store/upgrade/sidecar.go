package upgrade

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// While older programs of the home run, their store keeps its schema (VER-04). A DB opens
// it unchanged, and the additional data of this build is in compat.db, which every
// connection attaches. SQLite resolves a name in the store first. So each statement uses
// the store's own table if it exists, else the sidecar's. The next DB without older
// programs upgrades the store and merges the sidecar.
//
// Each file has its own log, and SQLite commits the store's first. A crash in between
// leaves the store without the other half. So data that must be consistent is never
// written to both. If decisions are in the sidecar, their notices go through an outbox.
// Mail does not expire. All other data is derived from messages and repaired by CatchUp.

const sidecarName = "compat.db"

// Attach returns the attachment of the sidecar at path, "" for none.
func Attach(path string) sqlitex.Attachment {
	return sqlitex.Attachment{Path: path, Name: "sidecar"}
}

// SidecarPath returns the path of the sidecar of the store at path.
func SidecarPath(path string) string { return filepath.Join(filepath.Dir(path), sidecarName) }

// defers reports whether a store must keep its schema: it needs an upgrade, and a live
// program could not read it afterwards.
func (o Options) defers(is schema.Found) bool {
	return o.OldestReader > 0 && o.OldestReader < schema.Version && is.Version < schema.Version && !is.Empty
}

// prepareSidecar creates or completes the sidecar of a store of that version: the tables
// of every schema step that the store lacks.
func prepareSidecar(ctx context.Context, path string, version int) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if sqlitex.HasLog(path) {
			return sqlitex.OrphanLog(path)
		}
		if err := sqlitex.CreateEmpty(path); err != nil {
			return err
		}
	}
	if _, err := checkSidecar(ctx, path); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path))
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	scripts := []string{"compat", "deliveries", "remote", "team", "withdrawn"}
	for step := max(version, 1) + 1; step <= schema.Version; step++ {
		scripts = append(scripts, fmt.Sprint(step))
	}
	all := "BEGIN IMMEDIATE;"
	for _, name := range scripts {
		text, err := schema.Script(name)
		if err != nil {
			return err
		}
		all += text + ";"
	}
	_, err = pool.ExecContext(ctx, all+"COMMIT")
	return sqlitex.Error(path, err)
}

// checkSidecar fails with Unsupported for a file that is no sidecar, or a newer one. A
// sidecar without tables is left over from a crash during its creation.
func checkSidecar(ctx context.Context, path string) (empty bool, err error) {
	var seen schema.Found
	var tables map[string]string
	err = sqlitex.Quietly(ctx, path, true, func(pool *sql.DB) (err error) {
		seen, tables, err = schema.Read(ctx, pool)
		return err
	})
	_, ours := tables["outbox"]
	switch {
	case err != nil:
		return false, sqlitex.Error(path, err)
	case seen.Version > schema.SidecarVersion:
		return false, bridge.Errorf(bridge.Unsupported, "the compatibility store %s has schema version %d and this Bridge knows version %d: use a newer Bridge", path, seen.Version, schema.SidecarVersion)
	case len(tables) > 0 && !ours:
		return false, bridge.Errorf(bridge.Unsupported, "the file %s is not a compatibility store of Bridge", path)
	}
	return len(tables) == 0, nil
}

// FlushOutbox moves the notices of decisions to their recipients. The store commits
// first: after a crash in between, the same rows are inserted again and ignored. It fails
// if SQLite cannot write.
func FlushOutbox(t *sqlitex.Tx) error {
	_, err := t.Exec("INSERT OR IGNORE INTO main.messages (" + schema.MessageColumns + ") SELECT " + schema.MessageColumns + " FROM sidecar.outbox ORDER BY rowid")
	if err == nil {
		_, err = t.Exec("DELETE FROM sidecar.outbox")
	}
	return err
}

// Mend repairs what a crash between the two commits may have left: the sidecar's data of
// the last messages is missing then. It fails if SQLite cannot write.
func Mend(t *sqlitex.Tx) error {
	if err := FlushOutbox(t); err != nil {
		return err
	}
	return schema.MarkAnswers(t, "messages", "m.rowid > (SELECT message FROM message_peers_upto)")
}

// notCarried are the sidecar's tables that the store rebuilds or that belong to the
// sidecar.
var notCarried = []string{"outbox", "bridge_components", "message_peers", "message_peers_upto", "messages"}

// carryOver merges a sidecar into the upgraded store, in one transaction, and moves the
// file away permanently (VER-04). It may be interrupted at any step and repeated: rows
// that the store has stay unchanged.
func carryOver(ctx context.Context, path string, opts Options) error {
	sidecar := SidecarPath(path)
	if _, err := os.Lstat(sidecar); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	empty, err := checkSidecar(ctx, sidecar)
	if err != nil {
		return err
	}
	if empty {
		return retire(sidecar, opts)
	}
	pool := sqlitex.OpenAttached(sqlitex.WriterDSN(path), Attach(sidecar), "")
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return sqlitex.Error(path, err)
	}
	work := sqlitex.NewTx(conn)
	err = work.Begin()
	if err == nil {
		err = carryTables(ctx, work, opts)
	}
	if err != nil {
		work.Rollback()
		return errors.Join(sqlitex.Error(path, err), work.Close())
	}
	complete, err := emptyLog(ctx, conn)
	if err := errors.Join(err, work.Close(), pool.Close()); err != nil || !complete {
		return sqlitex.Error(sidecar, err) // another process still reads it: the next broker moves it away
	}
	return retire(sidecar, opts)
}

// carryTables copies every table and commits.
func carryTables(ctx context.Context, t *sqlitex.Tx, opts Options) error {
	if _, err := t.Exec("INSERT OR IGNORE INTO main.messages (" + schema.MessageColumns + ") SELECT " + schema.MessageColumns + " FROM sidecar.outbox ORDER BY rowid"); err != nil {
		return err
	}
	names, err := texts(ctx, t, `SELECT c.name FROM sidecar.sqlite_schema c JOIN main.sqlite_schema m ON m.name = c.name AND m.type = 'table'
		WHERE c.type = 'table' AND c.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND c.name NOT LIKE 'history\_fts%' ESCAPE '\' ORDER BY c.name`)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(notCarried, name) {
			continue
		}
		if err := opts.at("carry "+name, nil); err != nil {
			return err
		}
		if err := carryTable(ctx, t, name); err != nil {
			return fmt.Errorf("carrying %s over: %w", name, err)
		}
	}
	if err := opts.at("commit what was carried", nil); err != nil {
		return err
	}
	if _, err := t.Exec("COMMIT"); err != nil {
		return err
	}
	return opts.at("carried over", nil)
}

// carryTable copies the rows that the store lacks. Decisions get the store's next
// revisions, in order, because the store may have got others meanwhile.
func carryTable(ctx context.Context, t *sqlitex.Tx, name string) error {
	list, err := texts(ctx, t, `SELECT c.name FROM pragma_table_info('`+name+`', 'sidecar') c JOIN pragma_table_info('`+name+`', 'main') m ON m.name = c.name ORDER BY c.cid`)
	if err != nil {
		return err
	}
	where := ""
	if name == "decisions" {
		list = slices.DeleteFunc(list, func(column string) bool { return column == "revision" })
		where = " WHERE NOT EXISTS (SELECT 1 FROM main.decisions d WHERE d.id = c.id) ORDER BY revision"
	}
	columns := strings.Join(list, ", ")
	_, err = t.Exec(fmt.Sprintf("INSERT OR IGNORE INTO main.%[1]s (%[2]s) SELECT %[2]s FROM sidecar.%[1]s c%[3]s", name, columns, where))
	return err
}

// emptyLog moves the sidecar's log into its file; complete is false while another process
// uses part of it.
func emptyLog(ctx context.Context, conn *sql.Conn) (complete bool, err error) {
	var busy, logged, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA sidecar.wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &moved)
	return busy == 0, err
}

// retire moves the sidecar to the folder of the migrations' files.
func retire(sidecar string, opts Options) error {
	if err := opts.at("put the compatibility store away", nil); err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(sidecar), ".migration-snapshots")
	if err := disk.MakeDir(dir); err != nil {
		return err
	}
	final := filepath.Join(dir, sidecarName+".carried-"+stampName(opts.Now()))
	err := disk.Publish(sidecar, final)
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		err = disk.Publish(sidecar, fmt.Sprintf("%s-%d", final, n))
	}
	if err == nil {
		opts.Log.Info("what was kept beside the older schema is in the upgraded store", "file", final)
	}
	return err
}

// texts returns the rows of a query of one text column.
func texts(ctx context.Context, t *sqlitex.Tx, query string) (found []string, err error) {
	rows, err := t.Query(ctx, query)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		found = append(found, text)
		return err
	})
	return found, err
}
