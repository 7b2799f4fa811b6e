package fulltext

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Limits of one step of the index, so small that a step is short.
const (
	stepRows  = 64
	stepBytes = 128 << 10
)

// source is a list of rows that the index follows by row id.
type source struct {
	name    string
	table   string
	kind    documentKind
	archive bool // it is in the archive
	// rows selects row id, message id, time and text from the row id ?1 on, at most ?2; last is
	// the last row id.
	rows, last string
	// beyond finds messages that contain ?1, before ?2, after the row id ?3, newest
	// first.
	beyond string
}

// documentKind is the stored kind of a document.
type documentKind int

const (
	messageDocument  documentKind = 0
	decisionDocument documentKind = 1
	runDocument      documentKind = 2
)

const (
	archivedRows = `SELECT rowid, ifnull(id, ''), ifnull(created_at, 0), CAST(ifnull(body, '') AS TEXT) FROM archived_messages WHERE rowid >= ?1 ORDER BY rowid LIMIT ?2`
	archivedLast = "SELECT max(rowid) FROM archived_messages"
	// The plus prevents a scan of the whole index of ages: few rows are behind a group.
	archivedBeyond = "SELECT id, ifnull(created_at, 0) FROM archived_messages WHERE rowid > ?3 AND " + Holds + " ORDER BY +created_at DESC, +rowid DESC"
)

const hasTranscripts = "EXISTS (SELECT 1 FROM conversation_records WHERE source >= 'run:' AND source < 'run;')"

// sources are the lists that the index follows, oldest first, so that the numbers of a
// rebuilt index follow the time.
var sources = []source{
	{name: "archive", table: "archived_messages", archive: true, rows: archivedRows, last: archivedLast, beyond: archivedBeyond},
	{name: "archived_messages", table: "archived_messages", rows: archivedRows, last: archivedLast, beyond: archivedBeyond},
	{
		// Messages merged from a backup have negative row ids, each merge below the last.
		name: "merged", table: "messages",
		rows:   `SELECT -rowid, id, created_at, CAST(body AS TEXT) FROM messages WHERE rowid < 0 AND rowid <= -?1 ORDER BY rowid DESC LIMIT ?2`,
		last:   "SELECT -min(rowid) FROM messages WHERE rowid < 0",
		beyond: "SELECT id, created_at FROM messages WHERE rowid < 0 AND rowid < -?3 AND " + Holds + schema.MergedLast,
	},
	{
		name: "messages", table: "messages",
		rows:   `SELECT rowid, id, created_at, CAST(body AS TEXT) FROM messages WHERE rowid >= ?1 ORDER BY rowid LIMIT ?2`,
		last:   "SELECT max(rowid) FROM messages",
		beyond: "SELECT id, created_at FROM messages WHERE rowid > ?3 AND " + Holds + " ORDER BY +created_at DESC, +rowid DESC",
	},
	{
		name: "decisions", table: "decisions", kind: decisionDocument,
		rows: `SELECT revision, id, created_at, topic || char(10) || body FROM decisions WHERE revision >= ?1 ORDER BY revision LIMIT ?2`,
		last: "SELECT max(revision) FROM decisions",
	},
	{
		// The lines of jobs' transcripts. Other programs' records are skipped; if there
		// are no others, they are not scanned each time.
		name: "transcripts", table: "conversation_records", kind: runDocument,
		rows: `SELECT id, source || '#' || offset, ifnull(at, 0), CAST(ifnull(body, '') AS TEXT) FROM conversation_records
			WHERE ` + hasTranscripts + ` AND id >= ?1 AND +source >= 'run:' AND +source < 'run;' ORDER BY id LIMIT ?2`,
		last: "SELECT max(id) FROM (SELECT id FROM conversation_records WHERE " + hasTranscripts + " AND +source >= 'run:' AND +source < 'run;' ORDER BY id DESC LIMIT 1)",
	},
}

// cursor is a row of a source; the zero cursor is before the first row.
type cursor struct {
	row int64
	id  string
}

// sourceRow is a row of a source to be indexed.
type sourceRow struct {
	cursor
	at   int64
	text string
}

// step indexes the next rows of the first source that has some, or creates the next
// group. An unreadable source does not block the others.
func (x *Index) step(ctx context.Context) (more bool, err error) {
	more, failed := x.group(ctx)
	if more || isDamage(failed) || ctx.Err() != nil {
		return more, failed
	}
	for _, from := range sources {
		upto, err := x.upto(ctx, from)
		if err != nil {
			return false, err
		}
		documents, err := x.after(ctx, from, upto)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if len(documents) == 0 {
			continue
		}
		return true, x.put(from, documents)
	}
	return false, failed
}

// upto returns the last row of the source that is in the index.
func (x *Index) upto(ctx context.Context, from source) (upto cursor, err error) {
	rows, err := x.file.tx.Query(ctx, "SELECT row, id FROM search_upto WHERE source = ?1", from.name)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&upto.row, &upto.id) })
	return upto, err
}

// after reads the rows behind a cursor. If the cursor's row has moved, rows were deleted,
// and SQLite reuses their row ids. Then the source is read again from its beginning, and
// known documents are skipped.
func (x *Index) after(ctx context.Context, from source, upto cursor) ([]sourceRow, error) {
	found, err := x.read(ctx, from, upto.row, stepRows+1)
	if err != nil || upto == (cursor{}) {
		return found, err
	}
	if len(found) > 0 && found[0].cursor == upto {
		return found[1:], nil
	}
	return x.read(ctx, from, 0, stepRows)
}

// read reads rows of a source from a row on.
func (x *Index) read(ctx context.Context, from source, row int64, limit int) (found []sourceRow, err error) {
	err = x.readSource(ctx, from, func(v View) error {
		found = nil
		size := 0
		rows, err := v.Query(ctx, from.rows, row, limit)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var d sourceRow
			err := rows.Scan(&d.row, sqlitex.Text(&d.id), sqlitex.Number(&d.at), sqlitex.Text(&d.text))
			if size += len(d.text); size <= stepBytes || len(found) < 2 {
				found = append(found, d)
			}
			return err
		})
	})
	return found, err
}

// last returns the last row id of a source.
func (x *Index) last(ctx context.Context, from source) (row int64, err error) {
	err = x.readSource(ctx, from, func(v View) error {
		var last sql.NullInt64
		rows, err := v.Query(ctx, from.last)
		err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&last) })
		row = last.Int64
		return err
	})
	return row, err
}

// readSource runs ask on the source's store; a missing source has no rows.
func (x *Index) readSource(ctx context.Context, from source, ask func(View) error) error {
	return ofSource(x.store.Read(ctx, from.archive, func(v View) error {
		if !v.Has(from.table) {
			return nil
		}
		return ask(v)
	}))
}

// put adds the documents and the source's new cursor.
func (x *Index) put(from source, documents []sourceRow) error {
	return x.write(func(t *sqlitex.Tx) error { return putAll(t, from, documents) })
}

// write runs work in a transaction on the index.
func (x *Index) write(work func(*sqlitex.Tx) error) error {
	t := x.file.tx
	if _, err := t.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := work(t)
	if err == nil {
		_, err = t.Exec("COMMIT")
	}
	if err != nil {
		t.Rollback()
	}
	return err
}

func putAll(t *sqlitex.Tx, from source, documents []sourceRow) error {
	for _, d := range documents {
		if err := putOne(t, from.kind, d); err != nil {
			return fmt.Errorf("indexing %s: %w", d.id, err)
		}
	}
	last := documents[len(documents)-1]
	_, err := t.Exec("INSERT INTO search_upto (source, row, id) VALUES (?1, ?2, ?3) ON CONFLICT (source) DO UPDATE SET row = excluded.row, id = excluded.id",
		from.name, last.row, last.id)
	return err
}

// putOne adds a document unless it is known: from another delivery of the message, or
// from before it moved.
func putOne(t *sqlitex.Tx, kind documentKind, d sourceRow) error {
	number := "1 + max(-1, (SELECT ifnull(max(doc), -1) FROM search_documents), (SELECT ifnull(max(last), -1) FROM search_groups))"
	if kind != messageDocument {
		number = "-1 + min(0, (SELECT ifnull(min(doc), 0) FROM search_documents))"
	}
	inserted, err := t.Exec("INSERT OR IGNORE INTO search_documents (doc, kind, id, at) SELECT "+number+", ?1, ?2, ?3", kind, d.id, d.at)
	if err != nil || inserted == 0 {
		return err
	}
	_, err = t.Exec("INSERT INTO search_words (rowid, body) SELECT doc, ?3 FROM search_documents WHERE kind = ?1 AND id = ?2", kind, d.id, d.text)
	return err
}
