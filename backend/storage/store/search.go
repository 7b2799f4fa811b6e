package store

import (
	"context"
	"math"

	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/schema"
)

// Search returns the messages whose body contains query literally, created before the given
// Unix milliseconds (0: all), newest first, across the store and the archive (STO-12). With
// an index it reads only candidates and rows that the index does not cover yet. Without one
// it reads backwards until it has enough. It fails if the store cannot be read.
func (r *Reader) Search(ctx context.Context, query string, before int64, limit int) ([]mail.HistoryRow, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	if r.index != nil && query != "" {
		found, usable, err := r.index.Substring(ctx, fulltext.SubstringQuery{Text: query, Before: before, Limit: limit})
		if err != nil {
			return nil, err
		}
		if usable {
			ids := make([]string, len(found))
			for i, s := range found {
				ids[i] = s.ID
			}
			return r.inOrder(ctx, ids)
		}
	}
	return r.scan(ctx, query, before, limit)
}

// indexedStore is the store as its index reads it.
type indexedStore struct{ reader *Reader }

// Read runs ask on the store or its archive (Store). It fails if that file cannot be read.
func (s indexedStore) Read(ctx context.Context, archive bool, ask func(fulltext.View) error) (err error) {
	reader := s.reader
	if archive {
		if reader, err = s.reader.archive(ctx); reader == nil || err != nil {
			return err
		}
	}
	return reader.read(ctx, func(v view) error { return ask(v) })
}

// Has reports whether the schema has that indexed table (View).
func (v view) Has(table string) bool {
	switch table {
	case "messages":
		return v.layout.messages
	case "archived_messages":
		return v.layout.archive
	case "decisions":
		return v.layout.decisions
	case "conversation_records":
		return v.layout.records
	}
	return false
}

// scan is Search without an index.
func (r *Reader) scan(ctx context.Context, query string, before int64, limit int) ([]mail.HistoryRow, error) {
	ask := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(v view) ([]sqlitex.Stamp, error) {
			return sqlitex.NewestStamps(ctx, v, limit, v.layout.search(), query, before)
		})
	}
	rows, err := ask(r)
	if err != nil {
		return nil, err
	}
	return r.withArchive(ctx, limit, rows, ask)
}

// search returns the queries for bodies that contain ?1 before ?2. Each is in the order
// of its table, so that none needs a sort.
func (l layout) search() []string {
	var queries []string
	if l.messages {
		queries = append(queries, "SELECT id, created_at FROM messages WHERE rowid >= 0 AND "+fulltext.Holds+" ORDER BY rowid DESC",
			"SELECT id, created_at FROM messages WHERE rowid < 0 AND "+fulltext.Holds+schema.MergedLast)
	}
	if l.archive {
		queries = append(queries, "SELECT id, ifnull(created_at, 0) FROM archived_messages WHERE "+fulltext.Holds+" ORDER BY created_at DESC, rowid DESC")
	}
	return queries
}
