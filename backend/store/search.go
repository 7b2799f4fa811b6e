package store

import (
	"context"
	"math"

	"bridge/backend/mail"
)

// Search returns the messages whose body holds query literally, created before
// the given Unix milliseconds (0: all), newest first, across the store and the
// archive (STO-12). It looks back only until it has enough.
func (r *Reader) Search(ctx context.Context, query string, before int64, limit int) ([]mail.HistoryRow, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	ask := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(v view) ([]stamp, error) {
			return v.newest(ctx, limit, v.layout.search(), query, before)
		})
	}
	rows, err := ask(r)
	if err != nil {
		return nil, err
	}
	return r.withArchive(ctx, limit, rows, ask)
}

// search returns the queries for bodies that hold ?1 before ?2, each in the
// order of its table, so that none has to sort what it finds.
func (l layout) search() []string {
	const found = " WHERE ifnull(created_at, 0) < ?2 AND (?1 = '' OR instr(body, ?1) > 0)"
	var queries []string
	if l.messages {
		queries = append(queries, "SELECT id, created_at FROM messages"+found+" ORDER BY rowid DESC")
	}
	if l.archive {
		queries = append(queries, "SELECT id, ifnull(created_at, 0) FROM archived_messages"+found+" ORDER BY created_at DESC, rowid DESC")
	}
	return queries
}
