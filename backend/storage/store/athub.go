package store

import (
	"context"
	"database/sql"

	"bridge/backend/platform/sqlitex"
)

// AtHub returns since when the first message for a PC, in order, is at the team's hub, in
// Unix milliseconds; 0 for none. It fails with Storage if the store cannot be read.
func (d Remote) AtHub(ctx context.Context, pc string) (since int64, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, "SELECT changed_at FROM remote_outbox WHERE pc = ?1 AND state = '"+crossingAtHub+"' ORDER BY place LIMIT 1", pc)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(sqlitex.Number(&since)) })
	})
	return since, err
}

// RecordAtHub records that the team's hub has those messages. It fails with Storage if the
// store cannot be written.
func (d Remote) RecordAtHub(ctx context.Context, pc string, ids []string) error {
	now := d.now().UnixMilli()
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, id := range ids {
			if _, err := t.Exec("UPDATE remote_outbox SET state = ?3, changed_at = ?4, words = NULL WHERE message_id = ?2 AND +pc = ?1 AND +state = ?5",
				pc, id, crossingAtHub, now, crossingWaiting); err != nil {
				return err
			}
		}
		return nil
	})
}

// RecordHeld records why the messages for a PC wait; "" means only that it is away. It
// fails with Storage if the store cannot be written.
func (d Remote) RecordHeld(ctx context.Context, pc, reason string) (changed int64, err error) {
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) (err error) {
		changed, err = t.Exec("UPDATE remote_outbox SET words = nullif(?2, '') WHERE pc = ?1 AND state = ?3 AND words IS NOT nullif(?2, '')", pc, reason, crossingWaiting)
		return err
	})
	return changed, err
}

// Recall makes messages at the hub wait here again for a PC. This store has them whole, and messages
// that the PC still takes from the hub count once. It fails with Storage if the store cannot be written.
func (d Remote) Recall(ctx context.Context, pc string) error {
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE remote_outbox SET state = ?2, changed_at = NULL, words = NULL WHERE pc = ?1 AND state = ?3", pc, crossingWaiting, crossingAtHub)
		return err
	})
}
