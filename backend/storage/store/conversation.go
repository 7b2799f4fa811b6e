package store

import (
	"context"

	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

// Conversation returns the messages from or to a peer created before the given Unix
// milliseconds (0: all), newest first. It fails with Storage if the store cannot be read.
func (r *Reader) Conversation(ctx context.Context, peerID string, before int64, limit int) ([]mail.HistoryRow, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	ask := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(v view) ([]sqlitex.Stamp, error) {
			return sqlitex.NewestStamps(ctx, v, limit, v.layout.conversation(), peerID, before)
		})
	}
	rows, err := ask(r)
	if err != nil {
		return nil, err
	}
	return r.withArchive(ctx, limit, rows, ask)
}

// conversation returns the queries for the peer ?1 before ?2: by the index of peers, and
// the messages after it. A schema without the index is scanned whole.
func (l layout) conversation() []string {
	const bound = "(recipient = ?1 OR from_id = ?1) AND created_at < ?2 ORDER BY created_at DESC, rowid DESC"
	var queries []string
	switch {
	case l.peers:
		queries = append(queries,
			"SELECT id, created_at FROM messages WHERE rowid > ifnull((SELECT message FROM message_peers_upto), 0) AND "+bound,
			"SELECT message_id, created_at FROM message_peers WHERE peer = ?1 AND created_at < ?2 ORDER BY created_at DESC, message_id DESC")
	case l.messages:
		queries = append(queries, "SELECT id, created_at FROM messages WHERE "+bound)
	}
	if l.archive && !l.peers {
		queries = append(queries, "SELECT id, created_at FROM archived_messages WHERE "+bound)
	}
	return queries
}
