package store

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
)

// Rehand replaces the data of a handover: an attempt was recorded before its outcome was
// known. It fails with Storage if the store cannot be written.
func (d *DB) Rehand(ctx context.Context, mark mail.Mark) error {
	return d.writer.DoFor(ctx, func() []cache.Invalidation { return cache.Marked(mark) }, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE delivery_stages SET handed_at = ?3, handed_by = ?4 WHERE message_id = ?1 AND recipient = ?2",
			mark.MessageID, mark.Recipient, mark.At, mark.Evidence)
		if err != nil {
			return err
		}
		return markWay(t, bridge.StageHanded, mark)
	})
}

// Unhand reverts a handover that certainly did not happen: the message is ordinary unread
// mail again. It fails with Storage if the store cannot be written.
func (d *DB) Unhand(ctx context.Context, messageID, recipient string) error {
	return d.writer.DoFor(ctx, func() []cache.Invalidation { return []cache.Invalidation{{Message: messageID, Recipient: recipient}} }, func(t *sqlitex.Tx) error {
		return unhand(t, messageID, recipient, 0)
	})
}

// unhand reverts a handover of that time, Unix milliseconds, or of any time (0).
func unhand(t *sqlitex.Tx, messageID, recipient string, at int64) error {
	changed, err := t.Exec("UPDATE delivery_stages SET handed_at = NULL, handed_by = NULL WHERE message_id = ?1 AND recipient = ?2 AND (?3 = 0 OR handed_at = ?3)", messageID, recipient, at)
	if err == nil && changed > 0 {
		_, err = t.Exec("UPDATE delivery_ways SET handed_via = NULL, handed_at = NULL, handed_to = NULL WHERE message_id = ?1 AND recipient = ?2", messageID, recipient)
	}
	return err
}

// UnhandThese is Unhand for several deliveries as they were read: a newer handover stays.
// It fails as Unhand does, and then reverts none.
func (d *DB) UnhandThese(ctx context.Context, deliveries []mail.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, delivery := range deliveries {
			if err := unhand(t, delivery.ID, delivery.Recipient, delivery.Handed.At); err != nil {
				return err
			}
		}
		return nil
	})
}

// AppendWithHandover stores a message and its handover in one transaction: no hook may show a
// message that the CLI's own queue got. It fails with Conflict if another message has the id.
func (d *DB) AppendWithHandover(ctx context.Context, message bridge.Message, via mail.Via, detail string) error {
	return d.writer.DoFor(ctx, func() []cache.Invalidation { return cache.Sent(message) }, func(t *sqlitex.Tx) error {
		_, inserted, err := appendSend(t, []bridge.Message{message})
		if err != nil || !inserted {
			return err
		}
		return markStage(t, bridge.StageHanded, mail.Mark{
			MessageID: message.ID, Recipient: message.Recipient, At: message.CreatedAt, Via: via, Evidence: via.Evidence(detail),
		})
	})
}
