package store

import (
	"context"

	"bridge/backend/mail"
	"bridge/backend/sqlitex"
)

// Conversation returns the messages from or to a peer created before the given
// Unix milliseconds (0: all), newest first.
func (r *Reader) Conversation(ctx context.Context, peerID string, before int64, limit int) ([]mail.HistoryRow, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	ask := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(v view) ([]stamp, error) {
			return v.newest(ctx, limit, v.layout.conversation(), peerID, before)
		})
	}
	rows, err := ask(r)
	if err != nil {
		return nil, err
	}
	return r.withArchive(ctx, limit, rows, ask)
}

// conversation returns the queries for the peer ?1 before ?2: the index of
// peers and the messages after it. A schema without the index is walked whole.
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

// followMessages puts the messages that came since the last time into the index
// of peers.
func followMessages(t *sqlitex.Tx) error {
	_, err := t.Exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
		SELECT recipient, created_at, id FROM messages WHERE rowid > (SELECT message FROM message_peers_upto)
		UNION ALL
		SELECT from_id, created_at, id FROM messages WHERE rowid > (SELECT message FROM message_peers_upto)`)
	if err != nil {
		return err
	}
	return followed(t)
}

// followed notes the last message as the one the index reaches to. After the
// last messages left it must be noted again: SQLite gives their places to the
// next ones.
func followed(t *sqlitex.Tx) error {
	_, err := t.Exec("INSERT OR REPLACE INTO message_peers_upto (one, message, message_id, recipient) SELECT 1, ifnull(max(rowid), 0), id, recipient FROM messages")
	return err
}

// catchUp makes the index of peers whole when the store is opened. A last
// message that is not where it was noted tells that another program removed
// messages, so that nothing noted can be relied on.
func catchUp(t *sqlitex.Tx) error {
	reliable, err := t.Exists(`SELECT EXISTS (SELECT 1 FROM message_peers_upto u WHERE u.message = 0
		OR EXISTS (SELECT 1 FROM messages m WHERE m.rowid = u.message AND m.id = u.message_id AND m.recipient = u.recipient))`)
	if err != nil {
		return err
	}
	if reliable {
		return followMessages(t)
	}
	_, err = t.Exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
		SELECT recipient, created_at, id FROM messages UNION SELECT from_id, created_at, id FROM messages
		UNION SELECT recipient, created_at, id FROM archived_messages UNION SELECT from_id, created_at, id FROM archived_messages
		ORDER BY 1, 2, 3`)
	if err != nil {
		return err
	}
	return followed(t)
}
