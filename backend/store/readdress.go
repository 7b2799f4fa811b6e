package store

import "context"

// Readdress gives the unread mail of one peer id to another: a process that
// stood under an id of its own turned out to be a host session known before. A
// message that the other already has stays where it is.
func (d *DB) Readdress(ctx context.Context, from, to string) error {
	if from == to || from == "" || to == "" {
		return nil
	}
	return d.writer.do(ctx, func(t *tx) error {
		_, err := t.exec("UPDATE OR IGNORE messages SET recipient = ?2 WHERE recipient = ?1 AND read_at IS NULL", from, to)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE OR IGNORE delivery_stages SET recipient = ?2 WHERE recipient = ?1
			AND EXISTS (SELECT 1 FROM messages WHERE id = message_id AND recipient = ?2)
			AND NOT EXISTS (SELECT 1 FROM messages WHERE id = message_id AND recipient = ?1)`, from, to)
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
			SELECT recipient, created_at, id FROM messages WHERE recipient = ?1 AND read_at IS NULL`, to)
		if err != nil {
			return err
		}
		return followMessages(t)
	})
}
