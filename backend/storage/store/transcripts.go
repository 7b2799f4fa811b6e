package store

import (
	"context"
	"database/sql"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
)

// Transcripts of delegated jobs are stored among the records of conversations. So search
// finds them and a full snapshot holds them (JOB-25). Bridge's sources are named by
// transcriptSource and the job; other programs' sources stay unchanged.
const transcriptSource = "run:"

// Transcript is a piece of the transcript of a job's runs: the lines of its file from
// byte From to byte Upto.
type Transcript struct {
	Job        string
	Agent      bridge.AgentKind
	Session    string // of the agent's CLI
	Project    string // the job's working folder
	Path       string // of the file, relative to the home
	From, Upto int64
	Lines      []TranscriptLine
}

// TranscriptLine is one line with text. Offset is the byte where it begins.
type TranscriptLine struct {
	Offset int64
	At     int64 // Unix milliseconds
	Kind   string
	Body   string
}

// keepsTranscripts queries whether the store has the tables: one that older programs
// still read may lack them.
const keepsTranscripts = "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'conversation_records')"

// TranscriptUpto returns how many bytes of the job's transcript the store has. ok is false
// if it cannot store transcripts now. It fails with Storage if the store cannot be read.
func (d *DB) TranscriptUpto(ctx context.Context, job string) (upto int64, ok bool, err error) {
	err = d.read(ctx, func(v view) error {
		upto, ok = 0, v.layout.records
		if !ok {
			return nil
		}
		rows, err := v.Query(ctx, "SELECT offset FROM conversation_sources WHERE id = ?1", transcriptSource+job)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(sqlitex.Number(&upto)) })
	})
	return upto, ok, err
}

// KeepTranscript stores the next piece of a job's transcript atomically. It fails with Conflict if
// the piece does not begin where the last one ended, and with Unsupported without the tables.
func (d *DB) KeepTranscript(ctx context.Context, t Transcript) error {
	return d.writer.DoFor(ctx, cache.Nothing, func(tx *sqlitex.Tx) error {
		has, err := tx.Exists(keepsTranscripts)
		if err != nil {
			return err
		}
		if !has {
			return bridge.Errorf(bridge.Unsupported, "the store keeps no transcripts while older programs read it")
		}
		return storeTranscript(tx, t)
	})
}

func storeTranscript(tx *sqlitex.Tx, t Transcript) error {
	source := transcriptSource + t.Job
	err := upsert(tx, "UPDATE conversations SET session = nullif(?3, ''), project = ?4 WHERE id = ?1 AND job = ?5 AND agent = ?2",
		"INSERT OR IGNORE INTO conversations (id, agent, session, project, job, kind) VALUES (?1, ?2, nullif(?3, ''), ?4, ?5, 'job')",
		source, string(t.Agent), t.Session, t.Project, t.Job)
	if err != nil {
		return err
	}
	changed, err := tx.Exec("UPDATE conversation_sources SET offset = ?3, path = ?4 WHERE id = ?1 AND offset = ?2", source, t.From, t.Upto, t.Path)
	if err == nil && changed == 0 && t.From == 0 {
		changed, err = tx.Exec(`INSERT INTO conversation_sources (id, path, conversation, format, generation, offset)
			SELECT ?1, ?2, ?1, 'bridge-run', 0, ?3 WHERE NOT EXISTS (SELECT 1 FROM conversation_sources WHERE id = ?1)`, source, t.Path, t.Upto)
	}
	if err == nil && changed == 0 {
		err = bridge.Errorf(bridge.Conflict, "the transcript of %s is not at byte %d", t.Job, t.From)
	}
	for _, line := range t.Lines {
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO conversation_records (source, generation, offset, conversation, at, body, part)
			SELECT ?1, 0, ?2, ?1, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM conversation_records WHERE source = ?1 AND generation = 0 AND offset = ?2)`,
			source, line.Offset, line.At, line.Body, line.Kind)
	}
	return err
}

// Said is one line of a job's transcript.
type Said struct {
	Job   string
	Agent bridge.AgentKind
	Kind  string
	At    int64
	Body  string
}

// saidNamed returns the stored ones of the given transcript lines, by their ids.
func (r *Reader) saidNamed(ctx context.Context, ids []string) (found map[string]Said, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = r.read(ctx, func(v view) error {
		found = map[string]Said{}
		if !v.layout.records {
			return nil
		}
		for _, id := range ids {
			source, offset, _ := strings.Cut(id, "#")
			rows, err := v.Query(ctx, `SELECT ifnull(c.job, ''), ifnull(c.agent, ''), ifnull(m.part, ''), ifnull(m.at, 0), ifnull(m.body, '')
				FROM conversation_records m JOIN conversations c ON c.id = m.conversation WHERE m.source = ?1 AND m.generation = 0 AND m.offset = CAST(?2 AS INTEGER)`, source, offset)
			err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
				var statement Said
				err := rows.Scan(sqlitex.Text(&statement.Job), sqlitex.Text((*string)(&statement.Agent)), sqlitex.Text(&statement.Kind), sqlitex.Number(&statement.At), sqlitex.Text(&statement.Body))
				found[id] = statement
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}
