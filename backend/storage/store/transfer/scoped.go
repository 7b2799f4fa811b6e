package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// scopedBatch is how many rows are copied between two pauses: some milliseconds.
const scopedBatch = 1000

// ScopedCopy configures CopyMessages.
type ScopedCopy struct {
	Store   string // the primary store
	Archive string // the message archive; it may be missing
	To      string // a new file
	Live    bool   // a broker may be writing, as in Inspect
	// Pause is called before each batch of rows and may wait; its error stops the copy.
	Pause func() error
}

// CopyMessages copies only the messages, the archived ones of both stores, and the routes
// of delegated jobs. It writes them into the new database c.To and syncs it (STO-10). It
// holds no transaction while it pauses, so that the store's log can restart. It reads
// tables in the order in which rows move, so a row that moves meanwhile is copied twice
// and never missed. It returns the number of rows of each table of the copy. It fails
// with Storage if c.To exists or a file cannot be read or written, and with the error of
// Pause.
func CopyMessages(ctx context.Context, c ScopedCopy) (counts map[string]int, err error) {
	if err := sqlitex.CreateEmpty(c.To); err != nil {
		return nil, err
	}
	target, err := sql.Open("sqlite", sqlitex.DSN(c.To, "_pragma=journal_mode(MEMORY)", "_pragma=synchronous(FULL)"))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.To, err)
	}
	target.SetMaxOpenConns(1)
	text, err := schema.Script("scoped")
	if err == nil {
		_, err = target.ExecContext(ctx, text)
	}
	work := scoped{ScopedCopy: c, target: target, counts: map[string]int{}}
	if err == nil {
		err = work.from(ctx, c.Store, "messages", "archived_messages", "job_delivery_routes")
	}
	if err == nil {
		err = work.from(ctx, c.Archive, "archived_messages")
	}
	if err := errors.Join(err, target.Close()); err != nil {
		return nil, sqlitex.Error(c.To, err)
	}
	return work.counts, sqlitex.SyncFile(c.To)
}

// scopedColumns are the columns of the tables of a scoped copy.
var scopedColumns = map[string]string{
	"messages":            schema.MessageColumns,
	"archived_messages":   schema.MessageColumns + ", archive_reason, archived_at",
	"job_delivery_routes": "id, recipient, consumed_at",
}

type scoped struct {
	ScopedCopy
	target *sql.DB
	counts map[string]int
}

// from copies the given tables of one database, if they exist.
func (s *scoped) from(ctx context.Context, path string, tables ...string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	requested := false
	err := sqlitex.Quietly(ctx, path, s.Live, func(source *sql.DB) error {
		if requested { // the copied rows may be of different states
			return bridge.Errorf(bridge.Storage, "a broker came while the messages of %s were copied: make the backup again", path)
		}
		requested = true
		_, found, err := schema.Read(ctx, source)
		if err != nil {
			return err
		}
		for _, table := range tables {
			if _, has := found[table]; !has {
				continue
			}
			if err := s.table(ctx, source, table); err != nil {
				return fmt.Errorf("copying the table %s: %w", table, err)
			}
		}
		return nil
	})
	return sqlitex.CopyError(path, s.To, err)
}

func (s *scoped) table(ctx context.Context, source *sql.DB, table string) error {
	s.counts[table] += 0 // an empty table counts too
	last := int64(math.MinInt64)
	for {
		if err := errors.Join(ctx.Err(), s.Pause()); err != nil {
			return err
		}
		count, err := s.batch(ctx, source, table, &last)
		if err != nil {
			return err
		}
		s.counts[table] += count
		if count < scopedBatch {
			return nil
		}
	}
}

// batch copies the next rows after the row id last, in one transaction of the copy.
func (s *scoped) batch(ctx context.Context, source *sql.DB, table string, last *int64) (count int, err error) {
	columns := scopedColumns[table]
	width := strings.Count(columns, ",") + 1
	rows, err := source.QueryContext(ctx, fmt.Sprintf("SELECT rowid, %s FROM %s WHERE rowid > ? ORDER BY rowid LIMIT ?", columns, table), *last, scopedBatch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	tx, err := s.target.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	insert, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", table, columns, strings.Repeat(", ?", width-1)))
	if err != nil {
		return 0, err
	}
	values, places := make([]any, width), make([]any, width+1)
	places[0] = last
	for i := range values {
		places[i+1] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return 0, err
		}
		if _, err := insert.ExecContext(ctx, values...); err != nil {
			return 0, err
		}
		count++
	}
	return count, errors.Join(rows.Err(), tx.Commit())
}
