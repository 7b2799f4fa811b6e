package store

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
)

// Rehand replaces what is known of a hand-over: an attempt was noted before its
// outcome was known.
func (d *DB) Rehand(ctx context.Context, mark mail.Mark) error {
	return d.writer.DoFor(ctx, func() []cache.Touch { return cache.Marked(mark) }, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE delivery_stages SET handed_at = ?3, handed_by = ?4 WHERE message_id = ?1 AND recipient = ?2",
			mark.MessageID, mark.Recipient, mark.At, mark.Evidence)
		if err != nil {
			return err
		}
		return markWay(t, bridge.StageHanded, mark)
	})
}

// Unhand takes a hand-over back that certainly did not happen: the message is
// ordinary unread mail again.
func (d *DB) Unhand(ctx context.Context, messageID, recipient string) error {
	return d.writer.DoFor(ctx, func() []cache.Touch { return []cache.Touch{{Message: messageID, Recipient: recipient}} }, func(t *sqlitex.Tx) error {
		return unhand(t, messageID, recipient, 0)
	})
}

// unhand takes back what was handed over at a time, Unix milliseconds, or whenever that was (0).
func unhand(t *sqlitex.Tx, messageID, recipient string, at int64) error {
	changed, err := t.Exec("UPDATE delivery_stages SET handed_at = NULL, handed_by = NULL WHERE message_id = ?1 AND recipient = ?2 AND (?3 = 0 OR handed_at = ?3)", messageID, recipient, at)
	if err == nil && changed > 0 {
		_, err = t.Exec("UPDATE delivery_ways SET handed_via = NULL, handed_at = NULL, handed_to = NULL WHERE message_id = ?1 AND recipient = ?2", messageID, recipient)
	}
	return err
}

// UnhandThese is Unhand of several, as they were read: what was handed over anew
// meanwhile stays so.
func (d *DB) UnhandThese(ctx context.Context, handed []mail.Delivery) error {
	if len(handed) == 0 {
		return nil
	}
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, one := range handed {
			if err := unhand(t, one.ID, one.Recipient, one.Handed.At); err != nil {
				return err
			}
		}
		return nil
	})
}

// AppendHanded stores a message that is handed over in the same moment, in one
// transaction: no hook may show what the CLI's own queue was asked to show.
func (d *DB) AppendHanded(ctx context.Context, message bridge.Message, via mail.Via, detail string) error {
	return d.writer.DoFor(ctx, func() []cache.Touch { return cache.Sent(message) }, func(t *sqlitex.Tx) error {
		_, fresh, err := appendSend(t, []bridge.Message{message})
		if err != nil || !fresh {
			return err
		}
		return markStage(t, bridge.StageHanded, mail.Mark{
			MessageID: message.ID, Recipient: message.Recipient, At: message.CreatedAt, Via: via, Evidence: via.Evidence(detail),
		})
	})
}
