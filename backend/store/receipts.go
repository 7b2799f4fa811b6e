package store

import (
	"context"
	"database/sql"

	"bridge/backend/bridge"
	"bridge/backend/mail"
)

// Record stores that deliveries were woken, handed or consumed. The first fact
// about a delivery wins, a repeated one changes nothing, an unknown delivery is
// passed over. Consumed also sets read_at, in the archive too (MSG-06).
func (d *DB) Record(ctx context.Context, stage bridge.Stage, marks []mail.Mark) error {
	if stage != bridge.StageWoken && stage != bridge.StageHanded && stage != bridge.StageConsumed {
		return bridge.Errorf(bridge.Internal, "the stage %q is not recorded by a mark", stage)
	}
	if len(marks) == 0 {
		return nil
	}
	return d.writer.do(ctx, func(t *tx) error {
		for _, mark := range marks {
			if err := record(t, stage, mark); err != nil {
				return err
			}
		}
		return nil
	})
}

func record(t *tx, stage bridge.Stage, mark mail.Mark) error {
	if stage == bridge.StageConsumed {
		return consume(t, mark)
	}
	return markStage(t, stage, mark)
}

// consume sets read_at and the stage, unless the delivery was read already.
func consume(t *tx, mark mail.Mark) error {
	for _, table := range []string{"messages", "archived_messages"} {
		changed, err := t.exec("UPDATE "+table+" SET read_at = ?3 WHERE id = ?1 AND recipient = ?2 AND read_at IS NULL", mark.MessageID, mark.Recipient, mark.At)
		if err != nil {
			return err
		}
		if changed > 0 {
			return markStage(t, bridge.StageConsumed, mark)
		}
	}
	return nil
}

// markStage stores a fact about a delivery that exists and has none of its kind.
func markStage(t *tx, stage bridge.Stage, mark mail.Mark) error {
	at, by := string(stage)+"_at", string(stage)+"_by"
	_, err := t.exec(`INSERT INTO delivery_stages (message_id, recipient, `+at+`, `+by+`)
		SELECT ?1, ?2, ?3, ?4
		WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND recipient = ?2)
		   OR EXISTS (SELECT 1 FROM archived_messages WHERE id = ?1 AND recipient = ?2)
		ON CONFLICT (message_id, recipient) DO UPDATE SET `+at+` = excluded.`+at+`, `+by+` = excluded.`+by+`
		WHERE `+at+` IS NULL`, mark.MessageID, mark.Recipient, mark.At, mark.Evidence)
	return err
}

// markAnswers stores that messages were answered, as the replies m of a table
// and condition tell: the first of those whose senders had what they reply to.
func markAnswers(t *tx, table, condition string) error {
	_, err := t.exec(`INSERT INTO delivery_stages (message_id, recipient, answered_at, answered_by)
		SELECT m.reply_to, m.from_id, min(m.created_at), 'reply ' || m.id FROM ` + table + ` m
		WHERE ` + condition + ` AND m.reply_to IS NOT NULL
			AND (EXISTS (SELECT 1 FROM messages a WHERE a.id = m.reply_to AND a.recipient = m.from_id)
				OR EXISTS (SELECT 1 FROM archived_messages a WHERE a.id = m.reply_to AND a.recipient = m.from_id))
		GROUP BY m.reply_to, m.from_id
		ON CONFLICT (message_id, recipient) DO UPDATE SET answered_at = excluded.answered_at, answered_by = excluded.answered_by WHERE answered_at IS NULL`)
	return err
}

// ConsumeHanded marks everything that was handed to the recipient up to the
// given time and is still unread as consumed: its session was active after it.
// What went to the agent CLI's own queue, to a wake hook or into a channel is left,
// for it may be shown much later, or never (mail.QueueEvidence, mail.IsWake). It
// returns what it marked.
func (d *DB) ConsumeHanded(ctx context.Context, recipient string, handedUpTo, at int64, evidence string) (marks []mail.Mark, err error) {
	err = d.writer.do(ctx, func(t *tx) error {
		marks = []mail.Mark{}
		rows, err := t.query(ctx, `SELECT m.id FROM messages m CROSS JOIN delivery_stages s ON s.message_id = m.id AND s.recipient = m.recipient
			WHERE m.recipient = ?1 AND m.read_at IS NULL AND s.handed_at <= ?2
				AND substr(s.handed_by, 1, length(?3)) <> ?3 AND s.handed_by NOT IN (?4, ?5)
			ORDER BY m.created_at, m.rowid`, recipient, handedUpTo, mail.QueueEvidence, mail.WakeEvidence, mail.ChannelEvidence)
		err = each(rows, err, func(rows *sql.Rows) error {
			mark := mail.Mark{Recipient: recipient, At: at, Evidence: evidence}
			err := rows.Scan(text{&mark.MessageID})
			marks = append(marks, mark)
			return err
		})
		if err != nil {
			return err
		}
		for _, mark := range marks {
			if err := consume(t, mark); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return marks, nil
}
