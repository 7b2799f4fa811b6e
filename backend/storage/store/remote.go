package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// The states of a message to a session of a paired PC.
const (
	crossingWaiting = "waiting"
	crossingAtHub   = "at-hub"
	crossingArrived = "arrived"
	crossingRefused = "refused"
	crossingExpired = "expired"
)

// crossingOpen lists for SQL the states that the other PC has not answered.
const crossingOpen = "'" + crossingWaiting + "', '" + crossingAtHub + "'"

// RemoteReceipt is the state of a message from a paired PC, or that PC's report on a
// message sent there. News counts the known facts.
type RemoteReceipt struct {
	ID    string
	News  int64
	Marks map[bridge.Stage]mail.Fact
}

// Crossed is a paired PC's answer to a message sent to it: it has the message or refuses
// it.
type Crossed struct {
	ID      string
	Refused string // the reason, "" if it has the message
}

// Remote is the part of the store about paired PCs.
type Remote struct{ *DB }

// Remote returns the part of the store about paired PCs.
func (d *DB) Remote() Remote { return Remote{d} }

// errBesideOlder prevents that data of one commit is written across two files.
var errBesideOlder = bridge.Errorf(bridge.Unavailable, "nothing goes to other PCs or comes from them while an older Bridge of this home is running, or a table of its store is lost: `bridge doctor` says more")

// Append is DB.Append for a message to a session of a paired PC, given by id. The message
// and its place in the queue for that PC are one commit (RMT-21). It fails as DB.Append
// does, and with Unavailable while the upgrade is deferred.
func (d Remote) Append(ctx context.Context, msg bridge.Message, pc string) (rows []bridge.Message, isNew bool, err error) {
	if d.deferred() {
		return nil, false, errBesideOlder
	}
	return d.append(ctx, []bridge.Message{msg}, func(t *sqlitex.Tx) error {
		_, err := t.Exec("INSERT INTO remote_outbox (message_id, recipient, pc, state) VALUES (?1, ?2, ?3, ?4)", msg.ID, msg.Recipient, pc, crossingWaiting)
		return err
	})
}

// Waiting returns the messages that wait for a paired PC, in order: up to limit messages
// and limitBytes bytes of text, but at least one. It fails if the store cannot be read.
func (d Remote) Waiting(ctx context.Context, pc string, limit, limitBytes int) (waiting []bridge.Message, err error) {
	err = d.read(ctx, func(v view) error {
		waiting = []bridge.Message{}
		rows, err := v.Query(ctx, layout{}.live("remote_outbox o CROSS JOIN messages m ON m.id = o.message_id AND m.recipient = o.recipient",
			"o.pc = ?1 AND o.state = '"+crossingWaiting+"' ORDER BY o.place LIMIT ?2"), pc, limit) // without stages: letters have none
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; rows.Next(); {
			delivery, err := scanDelivery(rows)
			if err != nil {
				return err
			}
			if size += len(delivery.Body); size > limitBytes && len(waiting) > 0 {
				break
			}
			waiting = append(waiting, delivery.Message)
		}
		return rows.Err()
	})
	return waiting, err
}

// RecordCrossed stores a paired PC's answers to messages sent to it. It ignores unknown
// messages. It fails with Storage if the store cannot be written.
func (d Remote) RecordCrossed(ctx context.Context, pc string, answers []Crossed) error {
	now := d.now().UnixMilli()
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, answer := range answers {
			if err := crossed(t, pc, answer, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// crossed finds the row by its message: by the PC, SQLite would scan all waiting rows.
func crossed(t *sqlitex.Tx, pc string, answer Crossed, now int64) error {
	if answer.Refused == "" { // the PC has it, whatever was recorded before
		_, err := t.Exec("UPDATE remote_outbox SET state = ?3, changed_at = ?4, words = NULL WHERE message_id = ?2 AND +pc = ?1 AND +state <> ?3",
			pc, answer.ID, crossingArrived, now)
		return err
	}
	_, err := t.Exec("UPDATE remote_outbox SET state = ?3, changed_at = ?4, words = ?5 WHERE message_id = ?2 AND +pc = ?1 AND +state IN ("+crossingOpen+")",
		pc, answer.ID, crossingRefused, now, answer.Refused)
	return err
}

// everyPC lists the distinct PCs by one index step each (everyRecipient).
const everyPC = `WITH RECURSIVE pcs (pc) AS (
	SELECT min(pc) FROM remote_outbox
	UNION ALL
	SELECT (SELECT min(o.pc) FROM remote_outbox o WHERE o.pc > pcs.pc) FROM pcs WHERE pcs.pc IS NOT NULL) `

// Pending returns the PCs that have not confirmed their waiting messages, or not noted
// news. It fails with Storage if the store cannot be read.
func (d Remote) Pending(ctx context.Context) (pcs map[string]bool, err error) {
	pcs = map[string]bool{}
	return pcs, d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, everyPC+"SELECT pc FROM pcs WHERE EXISTS (SELECT 1 FROM remote_outbox o WHERE o.pc = pcs.pc AND o.state IN ("+crossingOpen+")) UNION SELECT pc FROM remote_inbox WHERE news > told")
		return sqlitex.Each(rows, err, func(rows *sql.Rows) (err error) {
			pc := ""
			err = rows.Scan(&pc)
			pcs[pc] = true
			return err
		})
	})
}

// RefuseStrangers refuses the waiting messages for all PCs but those, and returns their
// number. It fails with Storage if the store cannot be read or written.
func (d Remote) RefuseStrangers(ctx context.Context, pcs []string, reason string) (refused int64, err error) {
	known, err := json.Marshal(append([]string{}, pcs...))
	if err != nil {
		return 0, err
	}
	waits := false
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, everyPC+`SELECT EXISTS (SELECT 1 FROM pcs WHERE pc IS NOT NULL AND pc NOT IN (SELECT value FROM json_each(?1))
			AND EXISTS (SELECT 1 FROM remote_outbox o WHERE o.pc = pcs.pc AND o.state IN (`+crossingOpen+")))", string(known))
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&waits) })
	})
	if err != nil || !waits {
		return 0, err
	}
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) (err error) {
		refused, err = t.Exec("UPDATE remote_outbox SET state = ?2, changed_at = ?3, words = ?4 WHERE place IN (SELECT place FROM remote_outbox WHERE state IN ("+crossingOpen+") AND pc NOT IN (SELECT value FROM json_each(?1)))",
			string(known), crossingRefused, d.now().UnixMilli(), reason)
		return err
	})
	return refused, err
}

// Take stores messages from a paired PC in order, each once, in one commit. They are also
// read in that order, however long each frame took. inserted are the new ones. refused holds
// for each of msgs why it is not stored: Conflict if another message has its id.
func (d Remote) Take(ctx context.Context, msgs []bridge.Message, pc string) (inserted []bridge.Message, refused []error, err error) {
	if d.deferred() {
		return nil, nil, errBesideOlder
	}
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		inserted, refused = nil, make([]error, len(msgs))
		last, err := schema.LastFrom(t, msgs)
		for i, msg := range msgs {
			if err != nil {
				return err
			}
			msg.CreatedAt = max(msg.CreatedAt, last)
			first, err := storeOnce(t, msg, pc)
			if bridge.CodeOf(err) == bridge.Conflict {
				refused[i] = err
				continue
			}
			if err == nil && first {
				inserted, last = append(inserted, msg), msg.CreatedAt
				_, err = t.Exec("INSERT INTO remote_inbox (message_id, pc, arrived_at) VALUES (?1, ?2, ?3)", msg.ID, pc, d.now().UnixMilli())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return inserted, refused, err
}

// storeOnce stores a message unless it came before, even if that is archived.
func storeOnce(t *sqlitex.Tx, msg bridge.Message, pc string) (first bool, err error) {
	from := ""
	rows, err := t.Query(context.Background(), "SELECT pc FROM remote_inbox WHERE message_id = ?1", msg.ID)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(sqlitex.Text(&from)) })
	switch {
	case err != nil || from == pc:
		return false, err
	case from != "":
		return false, bridge.Errorf(bridge.Conflict, "another PC's message has the id %s", msg.ID)
	}
	_, first, err = appendSend(t, []bridge.Message{msg})
	return first, err
}

// Has reports whether a message with that id came from that PC already. It fails if the store cannot be read.
func (d Remote) Has(ctx context.Context, messageID, pc string) (has bool, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, "SELECT EXISTS (SELECT 1 FROM remote_inbox WHERE message_id = ?1 AND pc = ?2)", messageID, pc)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&has) })
	})
	return has, err
}

// News returns the outcomes of messages from a paired PC that the PC has not noted yet. It
// fails with Storage if the store cannot be read.
func (d Remote) News(ctx context.Context, pc string, limit int) (news []RemoteReceipt, err error) {
	stages := []bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed, bridge.StageAnswered, bridge.StageExpired}
	err = d.read(ctx, func(v view) error {
		news = nil
		rows, err := v.Query(ctx, `SELECT i.message_id, i.news, s.woken_at, s.woken_by, s.handed_at, s.handed_by, s.consumed_at, s.consumed_by, s.answered_at, s.answered_by, s.expired_at, s.expired_by
			FROM remote_inbox i CROSS JOIN delivery_stages s ON s.message_id = i.message_id WHERE i.pc = ?1 AND i.news > i.told LIMIT ?2`, pc, limit)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			receipt := RemoteReceipt{Marks: map[bridge.Stage]mail.Fact{}}
			facts := make([]mail.Fact, len(stages))
			places := []any{sqlitex.Text(&receipt.ID), &receipt.News}
			for i := range facts {
				places = append(places, sqlitex.Number(&facts[i].At), sqlitex.Text(&facts[i].Evidence))
			}
			err := rows.Scan(places...)
			for i, fact := range facts {
				if fact.Happened() {
					receipt.Marks[stages[i]] = fact
				}
			}
			news = append(news, receipt)
			return err
		})
	})
	return news, err
}

// Noted records what a paired PC has noted of News. It fails if the store cannot be written.
func (d Remote) Noted(ctx context.Context, pc string, noted []RemoteReceipt) error {
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, receipt := range noted {
			if _, err := t.Exec("UPDATE remote_inbox SET told = max(told, min(?3, news)) WHERE message_id = ?2 AND pc = ?1", pc, receipt.ID, receipt.News); err != nil {
				return err
			}
		}
		return nil
	})
}

// RecordReceipts stores a paired PC's reports on messages sent to it. It fails with Internal for an unknown stage.
func (d Remote) RecordReceipts(ctx context.Context, pc string, receipts []RemoteReceipt) error {
	now := d.now().UnixMilli()
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		for _, receipt := range receipts {
			if err := recordReceipt(t, pc, receipt, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func recordReceipt(t *sqlitex.Tx, pc string, receipt RemoteReceipt, now int64) error {
	recipient := ""
	rows, err := t.Query(context.Background(), "SELECT recipient FROM remote_outbox WHERE message_id = ?2 AND +pc = ?1", pc, receipt.ID)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&recipient) })
	if err != nil || recipient == "" {
		return err // a report on a message that this PC never sent there
	}
	if err := crossed(t, pc, Crossed{ID: receipt.ID}, now); err != nil {
		return err
	}
	for stage, fact := range receipt.Marks {
		mark := mail.Mark{MessageID: receipt.ID, Recipient: recipient, At: fact.At, Via: mail.ViaOf(stage, fact.Evidence), Evidence: fact.Evidence}
		switch stage {
		case bridge.StageConsumed:
			err = consume(t, mark)
		case bridge.StageWoken, bridge.StageHanded, bridge.StageAnswered, bridge.StageExpired:
			err = markStage(t, stage, mark)
		default:
			err = bridge.Errorf(bridge.Internal, "a receipt tells of %q", stage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cross adds to each delivery to a session of a paired PC how far it came. Only such a
// recipient has a slash in its name.
func (v view) cross(ctx context.Context, history []mail.HistoryRow) error {
	var ids []string
	for _, row := range history {
		if len(row.Deliveries) == 1 && strings.Contains(row.Deliveries[0].Recipient, "/") {
			ids = append(ids, row.ID)
		}
	}
	if len(ids) == 0 || !v.layout.outbox {
		return nil
	}
	list, _ := json.Marshal(ids) // it can always be encoded
	found := map[string]mail.Crossing{}
	rows, err := v.Query(ctx, `SELECT o.message_id, o.recipient, o.state, o.changed_at, o.words FROM json_each(?1) wanted
		CROSS JOIN remote_outbox o ON o.message_id = wanted.value`, string(list))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var id, recipient, state string
		var fact mail.Fact
		err := rows.Scan(&id, &recipient, &state, sqlitex.Number(&fact.At), sqlitex.Text(&fact.Evidence))
		crossing := mail.Crossing{}
		crossing.Host, _, _ = strings.Cut(recipient, "/")
		switch state {
		case crossingArrived:
			fact.Evidence = crossing.Host + " has stored it"
			crossing.Arrived = fact
		case crossingRefused:
			crossing.Refused = fact
		case crossingAtHub:
			fact.Evidence = "the team's hub has stored it, " + crossing.Host + " has not taken it yet"
			crossing.AtHub = fact
		case crossingWaiting:
			crossing.Held = fact.Evidence
		}
		found[id] = crossing
		return err
	})
	for i := range history {
		if crossing, ok := found[history[i].ID]; ok {
			history[i].Deliveries[0].Remote = crossing
		}
	}
	return err
}
