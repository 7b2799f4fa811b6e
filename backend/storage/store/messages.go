package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
	"bridge/backend/storage/store/schema"
)

const (
	insertMessage = `INSERT INTO messages
		(id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, nullif(?8, ''), ?9, ?10, ?11, nullif(?12, 0)`
	idStored = `EXISTS (SELECT 1 FROM messages WHERE id = ?1) OR EXISTS (SELECT 1 FROM archived_messages WHERE id = ?1)`
	// insertFirst stores nothing if the id is known: one statement is measurably cheaper
	// than two.
	insertFirst = insertMessage + ` WHERE NOT (` + idStored + `)`
)

// Append stores one send in one durable transaction: the rows of one message, one per
// recipient (MSG-04). If the send is stored already, also in the archive, it returns the
// stored rows and inserted=false. It fails with bridge.Conflict if the id has another
// sender, target, reply or body. A reply also marks the message that it answers as
// answered by its sender.
func (d *DB) Append(ctx context.Context, msgs []bridge.Message) (rows []bridge.Message, inserted bool, err error) {
	return d.append(ctx, msgs, func(*sqlitex.Tx) error { return nil })
}

// append is Append with an additional write beside in the same commit, if the send is
// new.
func (d *DB) append(ctx context.Context, msgs []bridge.Message, beside func(*sqlitex.Tx) error) (rows []bridge.Message, inserted bool, err error) {
	if err := checkSend(msgs); err != nil {
		return nil, false, err
	}
	err = d.writer.DoFor(ctx, func() []cache.Invalidation { return cache.Sent(msgs...) }, func(t *sqlitex.Tx) (err error) {
		rows, inserted, err = appendSend(t, msgs)
		if err == nil && inserted {
			err = beside(t)
		}
		return err
	})
	if bridge.CodeOf(err) == bridge.Storage {
		// The disk failed at the commit: only reading shows whether it is stored.
		if stored, lookErr := d.storedSend(ctx, msgs); lookErr == nil && len(stored) == len(msgs) {
			return stored, true, nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	return rows, inserted, nil
}

func checkSend(msgs []bridge.Message) error {
	if len(msgs) == 0 {
		return bridge.Errorf(bridge.Invalid, "a message needs a recipient")
	}
	seen := map[string]bool{}
	for _, msg := range msgs {
		if msg.ID == "" || msg.ID != msgs[0].ID {
			return bridge.Errorf(bridge.Invalid, "one send has one message id")
		}
		if seen[msg.Recipient] {
			return bridge.Errorf(bridge.Invalid, "the message %s names the recipient %s twice", msg.ID, msg.Recipient)
		}
		seen[msg.Recipient] = true
	}
	return nil
}

func appendSend(t *sqlitex.Tx, msgs []bridge.Message) (rows []bridge.Message, inserted bool, err error) {
	stored, err := insert(t, insertFirst, msgs[0])
	if err != nil {
		return nil, false, err
	}
	if stored == 0 {
		rows, err = sameSend(t, msgs[0])
		return rows, false, err
	}
	for _, msg := range msgs[1:] {
		if _, err := insert(t, insertMessage, msg); err != nil {
			return nil, false, err
		}
	}
	if msgs[0].ReplyTo != "" {
		answer := mail.Mark{MessageID: msgs[0].ReplyTo, Recipient: msgs[0].From.ID, At: msgs[0].CreatedAt, Evidence: mail.ViaReply.Evidence(msgs[0].ID)}
		if err := markStage(t, "answered", answer); err != nil {
			return nil, false, err
		}
	}
	return slices.Clone(msgs), true, nil
}

// insert stores one row by insertMessage or insertFirst and returns the number of rows.
func insert(t *sqlitex.Tx, statement string, m bridge.Message) (int64, error) {
	return t.Exec(statement, m.ID, m.Recipient, m.From.ID, m.From.Name, string(m.From.Agent), m.To,
		m.ConversationID, m.ReplyTo, m.Hop, m.Body, m.CreatedAt, m.ReadAt)
}

// sameSend returns the stored rows of msg's id. It fails with Conflict if their content
// differs.
func sameSend(q sqlitex.Querier, msg bridge.Message) ([]bridge.Message, error) {
	found, err := deliveriesOf(context.Background(), q, fullLayout, []string{msg.ID})
	if err != nil {
		return nil, err
	}
	rows := make([]bridge.Message, 0, len(found))
	for _, stored := range found {
		rows = append(rows, stored.Message)
	}
	return rows, sameWords(msg, rows)
}

// sameWords fails with Conflict if msg's id is stored with other content.
func sameWords(msg bridge.Message, rows []bridge.Message) error {
	for _, stored := range rows {
		if stored.From.ID != msg.From.ID || stored.To != msg.To || stored.ReplyTo != msg.ReplyTo || stored.Body != msg.Body {
			return bridge.Errorf(bridge.Conflict, "the message id %s is taken by another message", msg.ID)
		}
	}
	return nil
}

// SentBefore returns the rows of a message that is stored already, in the store or the
// archive; none if its id is new. It fails with bridge.Conflict if the id has other
// content. It fails with bridge.Unavailable if the archive is unreadable: the message may
// be in it (MSG-04, MSG-05).
func (d *DB) SentBefore(ctx context.Context, msg bridge.Message) ([]bridge.Message, error) {
	if err := d.writer.CheckName(); err != nil {
		return nil, err
	}
	found, err := d.sent(ctx, msg.ID)
	if errors.Is(err, schema.ErrArchive) {
		return nil, bridge.WithCause(bridge.Unavailable, err,
			fmt.Sprintf("the archive cannot be read, so nobody knows whether the message %s was sent before: it was not sent, see `bridge doctor`", msg.ID))
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	rows := make([]bridge.Message, len(found[0].Deliveries))
	for i, delivery := range found[0].Deliveries {
		rows[i] = delivery.Message
	}
	return rows, sameWords(msg, rows)
}

// Sent is Find for callers that must distinguish a missing message from an unreadable
// archive: then it fails with bridge.Unavailable (MSG-12).
func (r *Reader) Sent(ctx context.Context, messageID string) (mail.HistoryRow, error) {
	found, err := r.sent(ctx, messageID)
	switch {
	case errors.Is(err, schema.ErrArchive):
		return mail.HistoryRow{}, bridge.WithCause(bridge.Unavailable, err, "the archive cannot be read, and the message may be in it: see `bridge doctor`")
	case err != nil:
		return mail.HistoryRow{}, err
	case len(found) == 0:
		return mail.HistoryRow{}, noMessage(messageID)
	}
	return found[0], nil
}

// sent returns one message from the store or the archive, or none. It fails for an
// unreadable archive, unless the store itself has the message.
func (r *Reader) sent(ctx context.Context, messageID string) ([]mail.HistoryRow, error) {
	call := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(view) ([]sqlitex.Stamp, error) { return []sqlitex.Stamp{{ID: messageID}}, nil })
	}
	// The store first: a message that leaves it meanwhile is in the archive by then.
	own, err := call(r)
	if err != nil {
		return nil, err
	}
	found, err := r.joinArchive(ctx, 1, own, call)
	if errors.Is(err, schema.ErrArchive) && len(own) > 0 {
		return own, nil // enough to know that it was sent
	}
	return found, err
}

func noMessage(id string) error {
	return bridge.Errorf(bridge.NotFound, "no message has the id %q", id)
}

func (d *DB) storedSend(ctx context.Context, msgs []bridge.Message) (rows []bridge.Message, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err = sameSend(v, msgs[0])
		return err
	})
	return rows, err
}

// Find returns one message with all its deliveries, including archived ones, or fails
// with bridge.NotFound.
func (r *Reader) Find(ctx context.Context, messageID string) (mail.HistoryRow, error) {
	call := func(r *Reader) ([]mail.HistoryRow, error) {
		return r.history(ctx, func(view) ([]sqlitex.Stamp, error) { return []sqlitex.Stamp{{ID: messageID}}, nil })
	}
	rows, err := call(r)
	if err == nil {
		rows, err = r.withArchive(ctx, 1, rows, call)
	}
	if err != nil {
		return mail.HistoryRow{}, err
	}
	if len(rows) == 0 {
		return mail.HistoryRow{}, noMessage(messageID)
	}
	return rows[0], nil
}

// Recent returns the newest messages first, in the order in which they were stored, with
// archived ones among them by time. It fails with Storage if the store cannot be read.
func (r *Reader) Recent(ctx context.Context, limit int) ([]mail.HistoryRow, error) {
	rows, err := r.recent(ctx, limit)
	if err != nil {
		return nil, err
	}
	return r.withArchive(ctx, limit, rows, func(archive *Reader) ([]mail.HistoryRow, error) { return archive.recent(ctx, limit) })
}

// recent is Recent without the archive.
func (r *Reader) recent(ctx context.Context, limit int) ([]mail.HistoryRow, error) {
	return r.cache.Recent(func(has func(id string) bool) (newest []sqlitex.Stamp, missing []mail.HistoryRow, err error) {
		missing, err = r.history(ctx, func(v view) (_ []sqlitex.Stamp, err error) {
			newest, err = v.newest(ctx, limit)
			return slices.DeleteFunc(slices.Clone(newest), func(s sqlitex.Stamp) bool { return has(s.ID) }), err
		})
		return newest, missing, err
	})
}

// newest returns the stamps of the newest messages of this store, newest first.
func (v view) newest(ctx context.Context, limit int) ([]sqlitex.Stamp, error) {
	var queries []string
	if v.layout.messages {
		queries = append(queries, "SELECT id, created_at FROM messages WHERE rowid >= 0 ORDER BY rowid DESC",
			"SELECT id, created_at FROM messages WHERE rowid < 0"+schema.MergedLast)
	}
	if v.layout.archive {
		queries = append(queries, "SELECT id, created_at FROM archived_messages ORDER BY created_at DESC, rowid DESC")
	}
	return sqlitex.NewestStamps(ctx, v, limit, queries)
}

// oneMessage is the identity of one message for people. sentSince selects rows sent at ?1
// or later: the newest rows are last, so that little more is read than counted. Only the
// table of messages has these columns there.
var oneMessage = fmt.Sprintf("CASE WHEN hop = %d AND ifnull(reply_to, '') = '' AND conversation_id LIKE '%s%%' THEN conversation_id ELSE id END",
	bridge.DecisionHop, bridge.DecisionConversation)

const sentSince = `created_at >= ?1 AND (messages.rowid < 0 OR
	messages.rowid > ifnull((SELECT last.rowid FROM messages last WHERE last.rowid >= 0 AND ifnull(last.created_at, 0) < ?1 ORDER BY last.rowid DESC LIMIT 1), -1))`

// CountSince counts the messages sent at since, Unix milliseconds, or later. A message with many
// recipients counts once, as do all notices of one decision. It fails if the store cannot be read.
func (r *Reader) CountSince(ctx context.Context, since int64) (count int, err error) {
	err = r.read(ctx, func(v view) error {
		count = 0
		if !v.layout.messages {
			return nil
		}
		rows, err := v.Query(ctx, "SELECT count(DISTINCT "+oneMessage+") FROM messages WHERE "+sentSince, since)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&count) })
	})
	return count, err
}

// Unread returns the recipient's unread messages, oldest first, including handed ones. If
// there are more than limit, those that first selects are chosen before the rest. first
// gets everything but the body; nil selects none. It fails if the store cannot be read.
func (r *Reader) Unread(ctx context.Context, recipient string, limit int, first func(mail.Delivery) bool) ([]mail.Delivery, error) {
	return r.unread(ctx, recipient, limit, first, "")
}

// Waiting is Unread without handed messages: any number of unconfirmed ones does not block
// those that wait. It fails as Unread does.
func (r *Reader) Waiting(ctx context.Context, recipient string, limit int, first func(mail.Delivery) bool) ([]mail.Delivery, error) {
	return r.unread(ctx, recipient, limit, first, " AND s.handed_at IS NULL")
}

// Handed returns the oldest unread messages of the recipient that were handed over. It fails as Unread does.
func (r *Reader) Handed(ctx context.Context, recipient string, limit int) ([]mail.Delivery, error) {
	return r.unread(ctx, recipient, limit, nil, " AND s.handed_at IS NOT NULL")
}

func (r *Reader) unread(ctx context.Context, recipient string, limit int, first func(mail.Delivery) bool, further string) (unread []mail.Delivery, err error) {
	err = r.read(ctx, func(v view) error {
		unread = []mail.Delivery{}
		if !v.layout.messages {
			return nil
		}
		if !v.layout.stages {
			further = "" // nothing was ever handed there
		}
		// A sum, because SQLite prepares a statement again for each bound bare limit.
		const inOrder = " ORDER BY m.created_at, m.rowid LIMIT ?2 + 0"
		where := "m.recipient = ?1 AND m.read_at IS NULL" + further
		if unread, err = v.deliveries(ctx, v.layout.live("messages m", where+inOrder), recipient, limit); err != nil {
			return err
		}
		if first == nil || len(unread) < limit {
			return nil
		}
		rows, err := v.preferred(ctx, v.layout.heads("messages m", where+inOrder), recipient, limit, first)
		if err != nil {
			return err
		}
		unread, err = v.deliveries(ctx, v.layout.live("messages m", "m.rowid IN (SELECT value FROM json_each(?1))"+inOrder), rows, limit)
		return err
	})
	return unread, err
}

// deliveries reads the rows of a query of layout.live.
func (v view) deliveries(ctx context.Context, query string, args ...any) ([]mail.Delivery, error) {
	found := []mail.Delivery{}
	rows, err := v.Query(ctx, query, args...)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		delivery, err := scanDelivery(rows)
		found = append(found, delivery.Delivery)
		return err
	})
	return found, err
}

// preferred reads all rows of a query of layout.heads, oldest first, and returns the row
// ids of limit messages as JSON: those that first selects, then the oldest of the rest.
func (v view) preferred(ctx context.Context, query, recipient string, limit int, first func(mail.Delivery) bool) (string, error) {
	const all = -1
	var named, others []int64
	rows, err := v.Query(ctx, query, recipient, all)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for len(named) < limit && rows.Next() {
		head, err := scanDelivery(rows)
		if err != nil {
			return "", fmt.Errorf("reading a row: %w", err)
		}
		if first(head.Delivery) {
			named = append(named, head.row)
		} else if len(others) < limit {
			others = append(others, head.row)
		}
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	places, err := json.Marshal(append(named, others[:min(len(others), limit-len(named))]...))
	return string(places), err
}

// UnreadCount returns the number of the recipient's unread messages. It fails if the store cannot be read.
func (r *Reader) UnreadCount(ctx context.Context, recipient string) (int, error) {
	return r.countUnread(ctx, "count(*)", recipient, "", "")
}

// WaitingCount is UnreadCount without handed messages: a host has those, but has not yet
// shown that it read them. It fails as UnreadCount does.
func (r *Reader) WaitingCount(ctx context.Context, recipient string) (int, error) {
	return r.countUnread(ctx, "count(*)", recipient, "", notHanded)
}

const notHanded = " AND NOT EXISTS (SELECT 1 FROM delivery_stages s WHERE s.message_id = m.id AND s.recipient = m.recipient AND s.handed_at IS NOT NULL)"

// WaitingFrom counts a recipient's waiting messages from that sender, without decisions. It fails if the store cannot be read.
func WaitingFrom(ctx context.Context, r *Reader, recipient, from string) (int, error) {
	return r.countUnread(ctx, "count(*)", recipient, from, " AND (m.hop <> "+strconv.Itoa(bridge.DecisionHop)+" OR ifnull(m.reply_to, '') <> '')"+notHanded)
}

// UnreadBytes returns the bytes of a recipient's unread bodies from that sender. It fails if the store cannot be read.
func UnreadBytes(ctx context.Context, r *Reader, recipient, from string) (int, error) {
	return r.countUnread(ctx, "ifnull(sum(octet_length(m.body)), 0)", recipient, from, "")
}

// countUnread counts unread mail from that sender ("" for all) with a further stage condition.
func (r *Reader) countUnread(ctx context.Context, what, recipient, from, further string) (count int, err error) {
	err = r.read(ctx, func(v view) error {
		if !v.layout.messages {
			return nil
		}
		if !v.layout.stages {
			further = "" // nothing was ever handed there
		}
		rows, err := v.Query(ctx, "SELECT "+what+" FROM messages m WHERE m.recipient = ?1 AND m.read_at IS NULL AND (?2 = '' OR m.from_id = ?2)"+further, recipient, from)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&count) })
	})
	return count, err
}

// everyRecipient lists the distinct recipients by one index step each: a GROUP BY would
// read every message.
const everyRecipient = `WITH RECURSIVE recipients (name) AS (
	SELECT min(recipient) FROM messages
	UNION ALL
	SELECT (SELECT min(recipient) FROM messages WHERE recipient > name) FROM recipients WHERE name IS NOT NULL)`

// UnreadCounts counts the unread messages of every recipient that has some. It fails if the store cannot be read.
func (r *Reader) UnreadCounts(ctx context.Context) (map[string]int, error) {
	return r.cache.Unread(func(recipients []string) (counts map[string]int, err error) {
		err = r.read(ctx, func(v view) (err error) {
			counts, err = v.unreadCounts(ctx, recipients)
			return err
		})
		return counts, err
	})
}

// unreadCounts is UnreadCounts of some recipients, or of all (nil).
func (v view) unreadCounts(ctx context.Context, only []string) (map[string]int, error) {
	counts := map[string]int{}
	if !v.layout.messages {
		return counts, nil
	}
	recipients, args := everyRecipient, []any{}
	if only != nil {
		list, _ := json.Marshal(only) // it can always be encoded
		recipients, args = "WITH recipients (name) AS (SELECT value FROM json_each(?1))", []any{string(list)}
	}
	rows, err := v.Query(ctx, recipients+`
		SELECT name, (SELECT count(*) FROM messages WHERE recipient = name AND read_at IS NULL) AS unread
		FROM recipients WHERE name IS NOT NULL AND unread > 0`, args...)
	return counts, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var recipient string
		var count int
		err := rows.Scan(&recipient, &count)
		counts[recipient] = count
		return err
	})
}

// history returns the messages that pick selects, in its order, with all their
// deliveries. One query finds the ids, one reads the rows.
func (r *Reader) history(ctx context.Context, pick func(view) ([]sqlitex.Stamp, error)) (history []mail.HistoryRow, err error) {
	err = r.read(ctx, func(v view) error {
		history = []mail.HistoryRow{}
		stamps, err := pick(v)
		if err != nil {
			return err
		}
		ids := make([]string, len(stamps))
		for i, s := range stamps {
			ids[i] = s.ID
		}
		found, err := deliveriesOf(ctx, v, v.layout, ids)
		if err != nil {
			return err
		}
		history = group(ids, found)
		return v.cross(ctx, history)
	})
	return history, err
}

func group(ids []string, found []*storedDelivery) []mail.HistoryRow {
	byID := make(map[string][]mail.Delivery, len(ids))
	for _, f := range found {
		byID[f.ID] = append(byID[f.ID], f.Delivery)
	}
	history := make([]mail.HistoryRow, 0, len(ids))
	for _, id := range ids {
		deliveries := byID[id]
		if len(deliveries) == 0 {
			continue
		}
		first := deliveries[0]
		history = append(history, mail.HistoryRow{
			ID: id, From: first.From, To: first.To, ConversationID: first.ConversationID, ReplyTo: first.ReplyTo,
			Hop: first.Hop, Body: first.Body, CreatedAt: first.CreatedAt, Deliveries: deliveries,
		})
	}
	return history
}

// storedDelivery is a delivery as it is stored, with its row id.
type storedDelivery struct {
	mail.Delivery
	archived bool
	row      int64
}

// deliveriesOf returns the deliveries of the given messages. Those of one message are in
// stored order, archived ones last.
func deliveriesOf(ctx context.Context, q sqlitex.Querier, l layout, ids []string) ([]*storedDelivery, error) {
	var selects []string
	if l.messages {
		selects = append(selects, l.live("json_each(?1) wanted CROSS JOIN messages m ON m.id = wanted.value", "true"))
	}
	if l.archive {
		selects = append(selects, l.archived("json_each(?1) wanted CROSS JOIN archived_messages m ON m.id = wanted.value", "true"))
	}
	if len(selects) == 0 || len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("listing message ids: %w", err)
	}
	var found []*storedDelivery
	rows, err := q.Query(ctx, sqlitex.UnionAll(selects), string(list))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		delivery, err := scanDelivery(rows)
		found = append(found, &delivery)
		return err
	})
	slices.SortStableFunc(found, func(a, b *storedDelivery) int {
		if a.archived != b.archived {
			if a.archived {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.row, b.row)
	})
	return found, err
}

const (
	stageJoin = " LEFT JOIN delivery_stages s ON s.message_id = m.id AND s.recipient = m.recipient"
	wayJoin   = " LEFT JOIN delivery_ways w ON w.message_id = m.id AND w.recipient = m.recipient"
	// handedWay is the transport and the process of a handover, if they belong to the one
	// in the stages: an older program may have recorded another.
	handedWay = "iif(w.handed_at IS s.handed_at, w.handed_via, NULL), iif(w.handed_at IS s.handed_at, w.handed_to, NULL)"
)

// live returns a query for deliveries from messages m, archived one from archived_messages m.
func (l layout) live(from, where string) string { return l.current(l.body(), from, where) }

// heads is live with empty bodies: a long list is read without them.
func (l layout) heads(from, where string) string { return l.current("''", from, where) }

func (l layout) current(body, from, where string) string {
	return `SELECT m.id, m.recipient, m.from_id, m.from_name, m.from_agent, m.to_target, m.conversation_id, m.reply_to,
		m.hop, ` + body + `, m.created_at, m.read_at, m.rowid, NULL, NULL` + l.stageColumns() + " FROM " + from + l.stageJoin() + " WHERE " + where
}

func (l layout) archived(from, where string) string {
	return `SELECT m.id, m.recipient, m.from_id, m.from_name, m.from_agent, m.to_target,
		m.conversation_id, m.reply_to, m.hop, ` + l.body() + `, m.created_at, m.read_at, m.rowid,
		ifnull(m.archived_at, 0), ifnull(m.archive_reason, '')` + l.stageColumns() + " FROM " + from + l.stageJoin() + " WHERE " + where
}

// body returns the column of the body, or of its beginning for a brief list.
func (l layout) body() string {
	if l.brief {
		return fmt.Sprintf("substr(m.body, 1, %d)", briefChars)
	}
	return "m.body"
}

func (l layout) stageColumns() string {
	if !l.stages {
		return strings.Repeat(", NULL", 14)
	}
	ways := strings.Repeat(", NULL", 4)
	if l.ways {
		ways = ", w.woken_via, " + handedWay + ", w.consumed_via"
	}
	return `, s.woken_at, s.woken_by, s.handed_at, s.handed_by, s.consumed_at, s.consumed_by,
		s.answered_at, s.answered_by, s.expired_at, s.expired_by` + ways
}

func (l layout) stageJoin() string {
	switch {
	case !l.stages:
		return ""
	case !l.ways:
		return stageJoin
	default:
		return stageJoin + wayJoin
	}
}

// scanDelivery reads a row of live or archived.
func scanDelivery(rows *sql.Rows) (storedDelivery, error) {
	var d storedDelivery
	var replyTo, archiveReason sql.NullString
	var archivedAt sql.NullInt64
	var hop int64
	var at [5]int64
	var evidence [5]string
	var via [5]string // answers and expiries have only evidence texts
	err := rows.Scan(sqlitex.Text(&d.ID), sqlitex.Text(&d.Recipient), sqlitex.Text(&d.From.ID), sqlitex.Text(&d.From.Name), sqlitex.Text((*string)(&d.From.Agent)), sqlitex.Text(&d.To),
		sqlitex.Text(&d.ConversationID), &replyTo, sqlitex.Number(&hop), sqlitex.Text(&d.Body), sqlitex.Number(&d.CreatedAt), sqlitex.Number(&d.ReadAt), &d.row, sqlitex.Maybe(&archivedAt), &archiveReason,
		sqlitex.Number(&at[0]), sqlitex.Text(&evidence[0]), sqlitex.Number(&at[1]), sqlitex.Text(&evidence[1]), sqlitex.Number(&at[2]), sqlitex.Text(&evidence[2]), sqlitex.Number(&at[3]), sqlitex.Text(&evidence[3]), sqlitex.Number(&at[4]), sqlitex.Text(&evidence[4]),
		sqlitex.Text(&via[0]), sqlitex.Text(&via[1]), sqlitex.Text(&d.Handed.Process), sqlitex.Text(&via[2]))
	if err != nil {
		return d, err
	}
	d.ReplyTo, d.Hop, d.archived = replyTo.String, int(hop), archivedAt.Valid
	stages := [...]bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed, bridge.StageAnswered, bridge.StageExpired}
	for i, fact := range []*mail.Fact{&d.Woken, &d.Handed, &d.Consumed, &d.Answered, &d.Expired} {
		*fact = mail.Fact{At: at[i], Via: wayOf(stages[i], via[i], evidence[i]), Evidence: evidence[i], Process: fact.Process}
	}
	if !d.Consumed.Happened() {
		d.Consumed.At = d.ReadAt // read before stages were recorded
	}
	if d.archived && d.ReadAt == 0 && !d.Expired.Happened() {
		d.Expired = mail.Fact{At: archivedAt.Int64, Evidence: archiveReason.String}
	}
	return d, nil
}

// wayOf returns the stored transport; without one it derives it from the text.
func wayOf(stage bridge.Stage, via, evidence string) mail.Via {
	if via != "" {
		return mail.Via(via)
	}
	return mail.ViaOf(stage, evidence)
}
