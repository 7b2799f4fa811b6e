package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// ExpireRule defines which messages are too old (MSG-12). Times are Unix milliseconds of
// creation; 0 disables a rule.
type ExpireRule struct {
	TTLBefore    int64    // older mail expires, read or not
	QueuedBefore int64    // older unread mail expires if its recipient is not live
	Live         []string // peer ids exempt from the queue rule
	Team         []string // PCs exempt from the queue rule
	Limit        int      // most rows that one call moves; at least 1
}

// archiveMove is one row to archive, and the reason.
type archiveMove struct {
	mail.Mark
	reason string
}

// The reasons of expired rows, with their texts for people; ReasonRead is the other reason.
const (
	reasonTTL    = "ttl"
	reasonQueued = "queue-age"
)

var expiryWords = map[string]string{
	reasonTTL:    "older than the message lifetime",
	reasonQueued: "waited too long for its session",
}

// expireStep limits one transaction of Expire, so that sends are not delayed.
const expireStep = 500

// RuleAt returns the rule for these ages at a moment, to be applied in steps; an age of 0
// keeps mail forever.
func RuleAt(now time.Time, ttl, queued time.Duration) ExpireRule {
	rule := ExpireRule{Limit: expireStep}
	if ttl > 0 {
		rule.TTLBefore = now.Add(-ttl).UnixMilli()
	}
	if queued > 0 {
		rule.QueuedBefore = now.Add(-queued).UnixMilli()
	}
	return rule
}

// Expire moves old mail to the archive. It copies each row, and deletes it only if the
// archive holds exactly that row. A row whose identity the archive has with other content
// stays. It returns the marks of unread mail that expired. A store with an older schema
// retains its mail too. It fails with Storage if a row cannot be moved, and then moves none.
func (d *DB) Expire(ctx context.Context, rule ExpireRule) (marks []mail.Mark, err error) {
	if d.deferred() {
		return []mail.Mark{}, nil
	}
	now := d.now().UnixMilli()
	live, err := json.Marshal(append([]string{}, rule.Live...))
	if err != nil {
		return nil, fmt.Errorf("listing live peers: %w", err)
	}
	team, err := json.Marshal(append([]string{}, rule.Team...))
	if err != nil {
		return nil, fmt.Errorf("listing the PCs of the team: %w", err)
	}
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		marks = []mail.Mark{}
		moves, err := expired(t, rule, string(live), string(team))
		if err != nil {
			return err
		}
		if len(moves) == 0 {
			return nil
		}
		if err := schema.FollowMessages(t); err != nil { // expired rows must be in the lists first
			return err
		}
		for _, move := range moves {
			move.At = now
			if err := archive(t, move); err != nil {
				return err
			}
			if move.reason != schema.ReasonRead {
				marks = append(marks, move.Mark)
			}
		}
		return schema.Followed(t)
	})
	if err != nil {
		return nil, err
	}
	return marks, nil
}

// expired returns the rows to archive. Both halves use the index of unread mail, one
// recipient after the other. For read mail, the time of reading must be old too.
func expired(t *sqlitex.Tx, rule ExpireRule, live, team string) ([]archiveMove, error) {
	const moved = `NOT EXISTS (SELECT 1 FROM archived_messages a WHERE a.id = m.id AND a.recipient = m.recipient AND NOT (` + schema.SameArchived + `))`
	// Mail sent to another PC ages there, from its arrival. A PC of the team stays known
	// while it or the hub is away (HUB-05).
	const crossed = `(EXISTS (SELECT 1 FROM remote_outbox o WHERE o.message_id = m.id AND o.recipient = name AND (o.state <> '` + crossingWaiting + `' OR o.pc IN (SELECT value FROM json_each(?5))))
		OR EXISTS (SELECT 1 FROM remote_inbox i WHERE i.message_id = m.id AND i.arrived_at >= ?2))`
	// A row without a usable identity stays: it would block the others.
	const named = `typeof(m.id) = 'text' AND typeof(name) = 'text'`
	rows, err := t.Query(context.Background(), everyRecipient+`
		SELECT m.id, m.recipient, iif(m.created_at < ?1, '`+reasonTTL+`', '`+reasonQueued+`')
		FROM recipients CROSS JOIN messages m ON m.recipient = name AND m.read_at IS NULL AND m.created_at < max(?1, ?2)
		WHERE (m.created_at < ?1 OR name NOT IN (SELECT value FROM json_each(?3)) AND NOT `+crossed+`) AND `+named+` AND `+moved+`
		UNION ALL
		SELECT m.id, m.recipient, '`+schema.ReasonRead+`'
		FROM recipients CROSS JOIN messages m ON m.recipient = name AND m.read_at < ?1
		WHERE m.created_at < ?1 AND `+named+` AND `+moved+`
		LIMIT ?4`, rule.TTLBefore, rule.QueuedBefore, live, max(rule.Limit, 1), team)
	var moves []archiveMove
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var move archiveMove
		err := rows.Scan(sqlitex.Text(&move.MessageID), sqlitex.Text(&move.Recipient), &move.reason)
		move.Evidence = expiryWords[move.reason]
		moves = append(moves, move)
		return err
	})
	return moves, err
}

// archive copies one row and then deletes it. The delete statement requires the copy, so
// that no row is lost.
func archive(t *sqlitex.Tx, move archiveMove) error {
	if move.reason != schema.ReasonRead {
		if err := markStage(t, bridge.StageExpired, move.Mark); err != nil {
			return err
		}
		_, err := t.Exec("UPDATE remote_outbox SET state = ?3, changed_at = ?4, words = NULL WHERE message_id = ?1 AND recipient = ?2 AND state IN ("+crossingOpen+")",
			move.MessageID, move.Recipient, crossingExpired, move.At)
		if err != nil {
			return err
		}
	}
	_, err := t.Exec(`INSERT INTO archived_messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id,
			reply_to, hop, body, created_at, read_at, archive_reason, archived_at)
		SELECT id, recipient, from_id, from_name, from_agent, to_target, conversation_id,
			reply_to, hop, body, created_at, read_at, ?3, ?4
		FROM messages m WHERE id = ?1 AND recipient = ?2
		AND NOT EXISTS (SELECT 1 FROM archived_messages a WHERE a.id = m.id AND a.recipient = m.recipient)`,
		move.MessageID, move.Recipient, move.reason, move.At)
	if err != nil {
		return err
	}
	removed, err := t.Exec(`DELETE FROM messages AS m WHERE id = ?1 AND recipient = ?2
		AND EXISTS (SELECT 1 FROM archived_messages a WHERE a.id = m.id AND a.recipient = m.recipient AND `+schema.SameArchived+`)`,
		move.MessageID, move.Recipient)
	if err == nil && removed != 1 {
		err = fmt.Errorf("archiving message %s for %s: no copy was found", move.MessageID, move.Recipient)
	}
	return err
}
