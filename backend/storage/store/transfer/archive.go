// Package transfer moves whole parts of bridge.db between files: online copies, copies of
// the messages alone and their merge, and old messages to the archive. Rows are copied
// first and deleted only after the copy is durable. It also inspects a database file, for
// its integrity and content, without changing it.
package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// archiveBatch is how many rows move between two commits. So many that a commit adds
// little cost per row, and so few that a sender waits for some milliseconds only. No sender
// waits while the next batch is copied.
const archiveBatch = 800

// ArchiveRule defines what is archived and who is notified.
type ArchiveRule struct {
	Before int64 // Unix milliseconds: rows created and read, or expired, before
	Now    int64 // Unix milliseconds
	// Step, if set, is called before each step; its error stops the archiving there.
	Step func(name string) error
	// Told, if set, is called with the number of moved rows, and of all that are to move.
	Told func(moved, all int)
}

// ArchiveMessages moves old messages from the primary store at path to the message
// archive at archive, even during a live broker (STO-07). It copies rows first, and
// deletes them only after the archive has committed exactly these rows: a crash leaves
// duplicates, never a loss. It fails with bridge.Conflict if the archive has an identity
// with other content. Unread mail stays.
func ArchiveMessages(ctx context.Context, path, archive string, rule ArchiveRule) (moved int, err error) {
	found, err := schema.Identify(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // nothing was ever stored
	}
	if err == nil && found.Version != schema.Version {
		err = bridge.Errorf(bridge.Unsupported, "the store %s has schema version %d: start the broker once to upgrade it, then archive", path, found.Version)
	}
	if err != nil {
		return 0, err
	}
	if err := schema.RequireWhole(ctx, path); err != nil {
		return 0, err
	}
	if err := prepareArchive(ctx, archive); err != nil {
		return 0, err
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path)+"&_pragma=temp_store(2)&_pragma=wal_autocheckpoint(4000)")
	if err != nil {
		return 0, fmt.Errorf("opening the store %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return 0, sqlitex.Error(path, err)
	}
	work := &archiver{rule: rule, tx: sqlitex.NewTx(conn)}
	defer func() { err = errors.Join(err, work.tx.Close()) }()
	if _, err := conn.ExecContext(ctx, "ATTACH DATABASE ? AS archive; PRAGMA archive.cache_size = -32000; CREATE TEMP TABLE batch (row INTEGER PRIMARY KEY)", archive); err != nil {
		return 0, sqlitex.Error(archive, err)
	}
	tables := []string{"archived_messages", "messages"}
	if rule.Told != nil {
		if err := work.count(ctx, tables); err != nil {
			return 0, sqlitex.Error(path, err)
		}
		rule.Told(0, work.all)
	}
	for _, table := range tables {
		if err := work.move(ctx, table); err != nil {
			return work.moved, sqlitex.Error(path, err)
		}
	}
	return work.moved, nil
}

// prepareArchive creates the archive, or checks that it is one of a known version.
func prepareArchive(ctx context.Context, archive string) error {
	if _, err := os.Lstat(archive); errors.Is(err, fs.ErrNotExist) {
		if err := sqlitex.CreateWhole(ctx, archive, describeArchive); err != nil {
			return err
		}
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(archive))
	if err != nil {
		return fmt.Errorf("opening the archive %s: %w", archive, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	seen, tables, err := schema.Read(ctx, pool)
	switch {
	case err != nil:
		return sqlitex.Error(archive, err)
	case seen.Version > schema.ArchiveVersion:
		return bridge.Errorf(bridge.Unsupported, "the archive %s has schema version %d and this Bridge knows version %d: use a newer Bridge", archive, seen.Version, schema.ArchiveVersion)
	case len(tables) > 0 && tables["archived_messages"] == "":
		return bridge.Errorf(bridge.Unsupported, "the file %s is not a message archive", archive)
	}
	err = describeArchive(ctx, pool)
	if err == nil {
		err = sqlitex.CheckpointWAL(ctx, pool) // rows of an earlier attempt permit deletions in the store
	}
	return sqlitex.Error(archive, err)
}

func describeArchive(ctx context.Context, pool *sql.DB) error {
	text, err := schema.Script("archive")
	if err == nil {
		_, err = pool.ExecContext(ctx, "BEGIN IMMEDIATE; "+text+"; COMMIT")
	}
	return err
}

// archiver moves batches on one connection with the archive attached.
type archiver struct {
	rule  ArchiveRule
	tx    *sqlitex.Tx
	moved int
	all   int // rows that are to move, as counted before
}

// count counts the rows that are to move.
func (a *archiver) count(ctx context.Context, tables []string) error {
	for _, table := range tables {
		var found int
		rows, err := a.tx.Query(ctx, fmt.Sprintf("SELECT count(*) FROM main.%s WHERE %s AND ?1 IS NOT NULL", table, archivable[table]), a.rule.Now, a.rule.Before)
		if err := sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&found) }); err != nil {
			return err
		}
		a.all += found
	}
	return nil
}

// archivable selects the rows of a table of the primary store to archive.
var archivable = map[string]string{
	"archived_messages": "ifnull(created_at, 0) < ?2",
	"messages":          "created_at < ?2 AND read_at < ?2",
}

// archivedAs gives the reason and the time of a row in the archive.
var archivedAs = map[string]string{
	"archived_messages": "m.archive_reason, ifnull(m.archived_at, ?1)",
	"messages":          "'" + schema.ReasonRead + "', ?1",
}

func (a *archiver) step(name string) error {
	if a.rule.Step == nil {
		return nil
	}
	return a.rule.Step(name)
}

// move archives the table's rows in the order of their row ids.
func (a *archiver) move(ctx context.Context, table string) error {
	last := int64(math.MinInt64) // merged rows have negative row ids
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		count, err := a.pick(table, &last)
		if err != nil || count == 0 {
			return err
		}
		if err := a.step("copy " + table); err != nil {
			return err
		}
		if err := a.within("BEGIN", func() error { return a.copyRows(table, count) }); err != nil {
			return err
		}
		if err := a.step("remove " + table); err != nil {
			return err
		}
		if err := a.within("BEGIN IMMEDIATE", func() error { return a.removeRows(table, count) }); err != nil {
			return err
		}
		if a.rule.Told != nil {
			a.rule.Told(a.moved, max(a.all, a.moved)) // more may have come meanwhile
		}
	}
}

// pick fills the batch and returns its size.
func (a *archiver) pick(table string, last *int64) (int64, error) {
	if _, err := a.tx.Exec("DELETE FROM temp.batch"); err != nil {
		return 0, err
	}
	count, err := a.tx.Exec(fmt.Sprintf("INSERT INTO temp.batch SELECT rowid FROM main.%s WHERE rowid > ?1 AND %s ORDER BY rowid LIMIT ?3", table, archivable[table]),
		*last, a.rule.Before, archiveBatch)
	if err != nil || count == 0 {
		return 0, err
	}
	rows, err := a.tx.Query(context.Background(), "SELECT max(row) FROM temp.batch")
	return count, sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(last) })
}

func (a *archiver) within(begin string, work func() error) error {
	if _, err := a.tx.Exec(begin); err != nil {
		return err
	}
	err := work()
	if err == nil {
		_, err = a.tx.Exec("COMMIT")
	}
	if err != nil {
		a.tx.Rollback()
	}
	return err
}

// The joins are CROSS so that SQLite scans the batch and looks up the rest: without
// statistics it may scan the whole table instead.

// copyRows copies the batch into the archive; it writes only the archive.
func (a *archiver) copyRows(table string, count int64) error {
	inserted, err := a.tx.Exec(fmt.Sprintf(`INSERT OR IGNORE INTO archive.archived_messages (%s, archive_reason, archived_at)
		SELECT %s, %s FROM temp.batch CROSS JOIN main.%s m ON m.rowid = batch.row`, schema.MessageColumns, schema.MessageColumns, archivedAs[table], table), a.rule.Now)
	if err != nil {
		return err
	}
	if inserted < count { // some existed: an interrupted archiving, or a conflict
		if err := a.checkKnown(table); err != nil {
			return err
		}
	}
	for _, about := range []string{"delivery_stages", "delivery_ways"} {
		_, err = a.tx.Exec(fmt.Sprintf(`INSERT OR IGNORE INTO archive.%[1]s SELECT s.* FROM temp.batch CROSS JOIN main.%[2]s m ON m.rowid = batch.row
			CROSS JOIN main.%[1]s s ON s.message_id = m.id AND s.recipient = m.recipient`, about, table))
		if err != nil {
			return err
		}
	}
	return nil
}

// checkKnown fails with Conflict if the archive has a row of the batch with other content.
func (a *archiver) checkKnown(table string) error {
	rows, err := a.tx.Query(context.Background(), fmt.Sprintf(`SELECT m.id FROM temp.batch CROSS JOIN main.%s m ON m.rowid = batch.row
		CROSS JOIN archive.archived_messages a ON a.id = m.id AND a.recipient = m.recipient WHERE NOT (%s) LIMIT 1`, table, schema.SameArchived))
	return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		return bridge.Errorf(bridge.Conflict, "the archive holds the message %s with other content: nothing was archived from there on, and both copies are kept", id)
	})
}

// removeRows deletes the batch from the primary store if the archive has committed the
// same rows; if one is missing, it deletes none. Rows that a broker moved away meanwhile,
// as on expiry, do not count as missing.
func (a *archiver) removeRows(table string, count int64) error {
	if err := schema.FollowMessages(a.tx); err != nil { // what leaves must be in the lists first
		return err
	}
	removed, err := a.tx.Exec(fmt.Sprintf(`DELETE FROM main.%s AS m WHERE rowid IN (SELECT row FROM temp.batch)
		AND EXISTS (SELECT 1 FROM archive.archived_messages a WHERE a.id IS m.id AND a.recipient IS m.recipient AND %s)`, table, schema.SameArchived))
	if err != nil {
		return err
	}
	if removed != count {
		if err := a.requireGone(table, count); err != nil {
			return err
		}
	}
	a.moved += int(removed)
	return schema.Followed(a.tx)
}

// requireGone fails with Conflict if rows of the batch are still in the table.
func (a *archiver) requireGone(table string, count int64) error {
	remaining := 0
	rows, err := a.tx.Query(context.Background(), fmt.Sprintf("SELECT count(*) FROM temp.batch CROSS JOIN main.%s m ON m.rowid = batch.row", table))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&remaining) })
	if err == nil && remaining > 0 {
		err = bridge.Errorf(bridge.Conflict, "%d of %d old messages have no equal copy in the archive or changed meanwhile: these were not archived", remaining, count)
	}
	return err
}
