package store

import (
	"context"
	"database/sql"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
)

// Record records that deliveries were woken, handed or consumed. Only the first fact about
// a delivery is stored, and an unknown delivery is ignored. Consumed also sets read_at, in
// the archive too (MSG-06). It fails with Internal for another stage.
func (d *DB) Record(ctx context.Context, stage bridge.Stage, marks []mail.Mark) error {
	if stage != bridge.StageWoken && stage != bridge.StageHanded && stage != bridge.StageConsumed {
		return bridge.Errorf(bridge.Internal, "the stage %q is not recorded by a mark", stage)
	}
	if len(marks) == 0 {
		return nil
	}
	return d.writer.DoFor(ctx, func() []cache.Invalidation { return cache.Marked(marks...) }, func(t *sqlitex.Tx) error {
		for _, mark := range marks {
			if err := record(t, stage, mark); err != nil {
				return err
			}
		}
		return nil
	})
}

func record(t *sqlitex.Tx, stage bridge.Stage, mark mail.Mark) error {
	if stage == bridge.StageConsumed {
		return consume(t, mark)
	}
	return markStage(t, stage, mark)
}

// consume sets read_at and the stage, unless the delivery was read already.
func consume(t *sqlitex.Tx, mark mail.Mark) error {
	for _, table := range []string{"messages", "archived_messages"} {
		changed, err := t.Exec("UPDATE "+table+" SET read_at = ?3 WHERE id = ?1 AND recipient = ?2 AND read_at IS NULL", mark.MessageID, mark.Recipient, mark.At)
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
func markStage(t *sqlitex.Tx, stage bridge.Stage, mark mail.Mark) error {
	at, evidence := string(stage)+"_at", string(stage)+"_by"
	changed, err := t.Exec(`INSERT INTO delivery_stages (message_id, recipient, `+at+`, `+evidence+`)
		SELECT ?1, ?2, ?3, ?4
		WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND recipient = ?2)
		   OR EXISTS (SELECT 1 FROM archived_messages WHERE id = ?1 AND recipient = ?2)
		ON CONFLICT (message_id, recipient) DO UPDATE SET `+at+` = excluded.`+at+`, `+evidence+` = excluded.`+evidence+`
		WHERE `+at+` IS NULL`, mark.MessageID, mark.Recipient, mark.At, mark.Evidence)
	if err != nil || changed == 0 {
		return err
	}
	if _, err := t.Exec("UPDATE remote_inbox SET news = news + 1 WHERE message_id = ?1", mark.MessageID); err != nil {
		return err
	}
	return markWay(t, stage, mark)
}

// markWay stores the transport by which a delivery reached the stage that was just marked.
func markWay(t *sqlitex.Tx, stage bridge.Stage, mark mail.Mark) (err error) {
	switch stage {
	case bridge.StageHanded:
		_, err = t.Exec(`INSERT INTO delivery_ways (message_id, recipient, handed_via, handed_at, handed_to) VALUES (?1, ?2, ?3, ?4, nullif(?5, ''))
			ON CONFLICT (message_id, recipient) DO UPDATE SET handed_via = excluded.handed_via, handed_at = excluded.handed_at, handed_to = excluded.handed_to`,
			mark.MessageID, mark.Recipient, string(mark.Via), mark.At, mark.Process)
	case bridge.StageWoken, bridge.StageConsumed:
		via := string(stage) + "_via"
		_, err = t.Exec(`INSERT INTO delivery_ways (message_id, recipient, `+via+`) VALUES (?1, ?2, ?3)
			ON CONFLICT (message_id, recipient) DO UPDATE SET `+via+` = excluded.`+via, mark.MessageID, mark.Recipient, string(mark.Via))
	default: // answers and expiries have only one way
	}
	return err
}

// ConsumeHandedOver marks unread mail as consumed that was handed to the recipient up to the given
// time: its session was active later. It skips mail that is shown later, if at all
// (mail.Via.ShownLater). It also skips mail for which earlier returns true: it was handed to a
// process before the active one. It returns the marks. It fails if the store cannot be written.
func (d *DB) ConsumeHandedOver(ctx context.Context, recipient string, handedUpTo, at int64, evidence string, earlier func(mail.Fact) bool) (marks []mail.Mark, err error) {
	err = d.writer.DoFor(ctx, func() []cache.Invalidation { return cache.Marked(marks...) }, func(t *sqlitex.Tx) error {
		marks = []mail.Mark{}
		rows, err := t.Query(ctx, `SELECT m.id, s.handed_at, s.handed_by, `+handedWay+` FROM messages m
			CROSS JOIN delivery_stages s ON s.message_id = m.id AND s.recipient = m.recipient`+wayJoin+`
			WHERE m.recipient = ?1 AND m.read_at IS NULL AND s.handed_at <= ?2 ORDER BY m.created_at, m.rowid`, recipient, handedUpTo)
		err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			mark := mail.Mark{Recipient: recipient, At: at, Via: mail.ViaActivity, Evidence: evidence}
			var fact mail.Fact
			var via string
			err := rows.Scan(sqlitex.Text(&mark.MessageID), sqlitex.Number(&fact.At), sqlitex.Text(&fact.Evidence), sqlitex.Text(&via), sqlitex.Text(&fact.Process))
			fact.Via = wayOf(bridge.StageHanded, via, fact.Evidence)
			if !fact.Via.ShownLater() && !earlier(fact) {
				marks = append(marks, mark)
			}
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
	return marks, err
}
