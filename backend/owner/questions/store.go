package questions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
	"bridge/backend/platform/sqlitex"
)

// schemaVersion is the version of questions.db that this build knows, from user_version.
const schemaVersion = 1

// table is the schema: record has the whole question, the other columns serve queries.
// Only one question of a key may be open.
const table = `CREATE TABLE questions (id TEXT PRIMARY KEY, project TEXT NOT NULL, dedupe_key TEXT NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL);
	CREATE UNIQUE INDEX questions_open_key ON questions (dedupe_key) WHERE status = 'open';
	PRAGMA user_version = 1`

// nothing is the empty catch-up step after a write.
func nothing(*sqlitex.Tx) error { return nil }

// keptEnded is how many closed questions are listed in addition to the open ones.
const keptEnded = 100

// file is questions.db. The first question creates it.
type file struct {
	path   string
	log    *slog.Logger
	writer *sqlitex.Writer // nil if there is no file
}

// open opens an existing file. It returns the open questions, those with an unsent
// answer and the last closed ones, in order of asking.
func (f *file) open(ctx context.Context) (found []question.Question, err error) {
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if f.writer, err = sqlitex.OpenWriter(ctx, f.path, sqlitex.Attachment{}, nothing, f.log); err != nil {
		return nil, err
	}
	err = f.writer.Do(ctx, func(t *sqlitex.Tx) error {
		found = nil
		var version int
		rows, err := t.Query(ctx, "PRAGMA user_version")
		if err := sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&version) }); err != nil {
			return err
		}
		if version > schemaVersion {
			return bridge.Errorf(bridge.Unsupported, "%s has version %d and this Bridge knows version %d: it is left as it is", f.path, version, schemaVersion)
		}
		rows, err = t.Query(ctx, `SELECT id, project, status, record FROM questions WHERE status = 'open'
			OR status = 'answered' AND json_valid(record) AND json_extract(record, '$.by.id') IS NOT NULL AND ifnull(json_extract(record, '$.carried'), 0) = 0
			OR rowid IN (SELECT rowid FROM questions WHERE status <> 'open' ORDER BY rowid DESC LIMIT ?1) ORDER BY rowid`, keptEnded)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id, project, status, record string
			if err := rows.Scan(&id, &project, &status, &record); err != nil {
				return err
			}
			item, err := read(id, project, status, record)
			if err != nil { // the row stays unchanged
				f.log.Warn("a question cannot be read", "id", id, "err", err)
				return nil
			}
			found = append(found, item)
			return nil
		})
	})
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return found, nil
}

// read decodes the question of a row. The columns override the record's values.
func read(id, project, status, record string) (question.Question, error) {
	item := question.Question{}
	err := json.Unmarshal([]byte(record), &item)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		err = nil // a member of another program may have the same name
	}
	item.ID, item.Project, item.State = id, project, question.State(status)
	if item.Title == "" && err == nil {
		err = errors.New("it has no title")
	}
	return item, err
}

// put writes questions, all or none. It keeps the record's members of other programs.
func (f *file) put(ctx context.Context, changed ...question.Question) error {
	if f.writer == nil {
		if err := f.make(ctx); err != nil {
			return err
		}
	}
	return f.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, item := range changed {
			record, err := json.Marshal(item)
			if err != nil {
				return fmt.Errorf("encode a question: %w", err)
			}
			_, err = t.Exec(`INSERT INTO questions (id, project, dedupe_key, status, record) VALUES (?1, ?2, ?3, ?4, ?5)
				ON CONFLICT (id) DO UPDATE SET status = excluded.status,
				record = CASE WHEN json_valid(record) THEN json_patch(record, excluded.record) ELSE excluded.record END`,
				item.ID, item.Project, item.Key(), string(item.State), string(record))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *file) make(ctx context.Context) error {
	err := sqlitex.CreateWhole(ctx, f.path, func(ctx context.Context, pool *sql.DB) error {
		_, err := pool.ExecContext(ctx, table)
		return err
	})
	if err != nil {
		return err
	}
	f.writer, err = sqlitex.OpenWriter(ctx, f.path, sqlitex.Attachment{}, nothing, f.log)
	return err
}

func (f *file) close() error {
	if f.writer == nil {
		return nil
	}
	writer := f.writer
	f.writer = nil
	return writer.Close()
}
