package store

import (
	"context"
	"database/sql"

	"bridge/backend/platform/sqlitex"
)

// AtHub tells since when the first message for a PC, in their order, lies at the team's
// hub; 0 where none does.
func (d Remote) AtHub(ctx context.Context, pc string) (since int64, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, "SELECT changed_at FROM remote_outbox WHERE pc = ?1 AND state = '"+crossingAtHub+"' ORDER BY place LIMIT 1", pc)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(sqlitex.Number(&since)) })
	})
	return since, err
}

// RecordAtHub stores that the team's hub has those messages now.
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

// RecordHeld stores why the messages for a PC wait on; "" for no reason but that it is
// away.
func (d Remote) RecordHeld(ctx context.Context, pc, words string) (changed int64, err error) {
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) (err error) {
		changed, err = t.Exec("UPDATE remote_outbox SET words = nullif(?2, '') WHERE pc = ?1 AND state = ?3 AND words IS NOT nullif(?2, '')", pc, words, crossingWaiting)
		return err
	})
	return changed, err
}

// Recall has what lies at the hub for a PC wait here again: this store has it whole, and
// what the PC does take from there counts once.
func (d Remote) Recall(ctx context.Context, pc string) error {
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE remote_outbox SET state = ?2, changed_at = NULL, words = NULL WHERE pc = ?1 AND state = ?3", pc, crossingWaiting, crossingAtHub)
		return err
	})
}
