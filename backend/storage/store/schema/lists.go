package schema

import (
	"context"
	"database/sql"

	"bridge/backend/platform/sqlitex"
)

// FollowMessages adds the messages since its last call to the index of peers. It fails if
// SQLite cannot write.
func FollowMessages(t *sqlitex.Tx) error {
	_, err := t.Exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
		SELECT recipient, created_at, id FROM messages WHERE rowid > (SELECT message FROM message_peers_upto)
		UNION ALL
		SELECT from_id, created_at, id FROM messages WHERE rowid > (SELECT message FROM message_peers_upto)`)
	if err != nil {
		return err
	}
	return Followed(t)
}

// Followed records the last message as the one that the index reaches. It must be
// recorded again after the last messages left, because SQLite reuses their row ids. It
// fails if SQLite cannot write.
func Followed(t *sqlitex.Tx) error {
	_, err := t.Exec("INSERT OR REPLACE INTO message_peers_upto (one, message, message_id, recipient) SELECT 1, ifnull(max(rowid), 0), id, recipient FROM messages")
	return err
}

// isReliable queries whether the last message is where it was recorded.
const isReliable = `SELECT EXISTS (SELECT 1 FROM message_peers_upto u WHERE u.message = 0
	OR EXISTS (SELECT 1 FROM messages m WHERE m.rowid = u.message AND m.id = u.message_id AND m.recipient = u.recipient))`

// VerifyCatchUp reads what CatchUp reads, and changes nothing. It fails with SQLite's error.
func VerifyCatchUp(ctx context.Context, on sqlitex.Querier) error {
	reliable := false
	rows, err := on.Query(ctx, isReliable)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&reliable) })
	if err != nil {
		return err
	}
	reads := []string{
		"SELECT count(recipient), count(created_at) + count(id) + count(from_id) FROM messages WHERE rowid > (SELECT message FROM message_peers_upto)",
		"SELECT ifnull(max(rowid), 0), id || recipient FROM messages",
	}
	if !reliable {
		reads = append(reads,
			"SELECT count(recipient), count(created_at) + count(id) + count(from_id) FROM messages",
			"SELECT count(recipient), count(created_at) + count(id) + count(from_id) FROM archived_messages")
	}
	for _, query := range reads {
		if err := readAll(ctx, on, query); err != nil {
			return err
		}
	}
	return nil
}

// VerifyPeers reads what PeersQuery selects. seen is its argument. It fails with SQLite's
// error.
func VerifyPeers(ctx context.Context, on sqlitex.Querier, seen bool) error {
	return readAll(ctx, on, PeersQuery(seen))
}

func readAll(ctx context.Context, on sqlitex.Querier, query string) error {
	rows, err := on.Query(ctx, query)
	return sqlitex.Each(rows, err, func(*sql.Rows) error { return nil })
}

// CatchUp completes the index of peers when the store is opened. If the last message is
// not where it was recorded, another program removed messages. Then the record is
// unreliable, and CatchUp indexes all messages. It fails if SQLite cannot read or write.
func CatchUp(t *sqlitex.Tx) error {
	reliable, err := t.Exists(isReliable)
	if err != nil {
		return err
	}
	if reliable {
		return FollowMessages(t)
	}
	_, err = t.Exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
		SELECT recipient, created_at, id FROM messages UNION SELECT from_id, created_at, id FROM messages
		UNION SELECT recipient, created_at, id FROM archived_messages UNION SELECT from_id, created_at, id FROM archived_messages
		ORDER BY 1, 2, 3`)
	if err != nil {
		return err
	}
	return Followed(t)
}

// MarkAnswers records that messages were answered, by the replies m of a table and
// condition: the first reply of each sender that had the message. It fails if SQLite
// cannot write.
func MarkAnswers(t *sqlitex.Tx, table, condition string) error {
	_, err := t.Exec(`INSERT INTO delivery_stages (message_id, recipient, answered_at, answered_by)
		SELECT m.reply_to, m.from_id, min(m.created_at), 'reply ' || m.id FROM ` + table + ` m
		WHERE ` + condition + ` AND m.reply_to IS NOT NULL
			AND (EXISTS (SELECT 1 FROM messages a WHERE a.id = m.reply_to AND a.recipient = m.from_id)
				OR EXISTS (SELECT 1 FROM archived_messages a WHERE a.id = m.reply_to AND a.recipient = m.from_id))
		GROUP BY m.reply_to, m.from_id
		ON CONFLICT (message_id, recipient) DO UPDATE SET answered_at = excluded.answered_at, answered_by = excluded.answered_by WHERE answered_at IS NULL`)
	return err
}

// PeersQuery returns the query of every known session, the last seen one first: its id, name,
// agent, host session id and the time when it was seen. seen states that the schema has
// peer_last_seen.
func PeersQuery(seen bool) string {
	at := "NULL"
	if seen {
		at = "(SELECT l.seen_at FROM peer_last_seen l JOIN peer_name_owners o ON o.name = l.name WHERE l.name = n.name AND o.identity = n.identity)"
	}
	return `SELECT n.identity, n.name, ifnull(n.agent, ''),
			coalesce((SELECT b.session_id FROM session_bindings b WHERE b.identity = n.identity ORDER BY b.learned_at DESC, b.rowid DESC LIMIT 1), n.session_id, ''),
			max(ifnull(n.learned_at, 0), ifnull(` + at + `, 0)) AS seen_at
		FROM peer_names n
		WHERE n.identity NOT LIKE '[%' AND n.rowid = (SELECT k.rowid FROM peer_names k WHERE k.identity = n.identity ORDER BY k.learned_at DESC, k.rowid DESC LIMIT 1)
		ORDER BY seen_at DESC, n.rowid DESC`
}
