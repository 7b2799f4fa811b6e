package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/upgrade"
)

// RecordDecision stores a revision, its receipts and the messages of notify in one transaction
// (DEC-10). It drops rev's source message if that is not stored (DEC-09), and sets what rev supersedes:
// the newest revision of its topic (DEC-07). A withdrawal, or a revision that names what it supersedes,
// must replace what is in force as [decision.Revision.Replace] requires; else it fails as Replace does.
// It returns the revision as stored and the queued notifications: a session with a receipt gets none.
// notify runs inside the write, perhaps twice: it must not wait for another write and must have no side
// effects. A revision that is stored already is returned unchanged. It fails with Conflict if another
// decision has the id, and with Unavailable for a withdrawal while the upgrade is deferred.
func (d *DB) RecordDecision(ctx context.Context, rev decision.Revision, notify func(decision.Revision) []decision.Notification) (decision.Revision, []decision.Notification, error) {
	var stored decision.Revision
	var queued []decision.Notification
	rev, err := d.withKnownSource(ctx, rev)
	if err == nil && rev.Withdrawn && d.deferred() {
		err = errNotWithdrawn
	}
	if err == nil {
		err = d.writer.Do(ctx, func(t *sqlitex.Tx) (err error) {
			stored, queued, err = recordDecision(t, rev, d.notices, notify)
			return err
		})
	}
	if err == nil {
		err = d.sendOutbox(ctx)
	}
	if err != nil {
		return decision.Revision{}, nil, err
	}
	return stored, queued, nil
}

// withKnownSource drops a source message that neither the store nor the archive has.
// Messages move but are never deleted, so a found source stays valid.
func (d *DB) withKnownSource(ctx context.Context, rev decision.Revision) (decision.Revision, error) {
	if rev.SourceMessageID == nil {
		return rev, nil
	}
	_, err := d.Find(ctx, *rev.SourceMessageID)
	if bridge.CodeOf(err) == bridge.NotFound {
		rev.SourceMessageID, err = nil, nil
	}
	return rev, err
}

func recordDecision(t *sqlitex.Tx, rev decision.Revision, notices string, notify func(decision.Revision) []decision.Notification) (decision.Revision, []decision.Notification, error) {
	known, err := t.Exists("SELECT EXISTS (SELECT 1 FROM decisions WHERE id = ?1)", rev.ID)
	if err != nil {
		return rev, nil, err
	}
	if known {
		return storedDecision(t, rev)
	}
	if rev.Withdrawn || rev.Supersedes != nil {
		earlier, err := revisions(context.Background(), t, rev.Topic)
		if err == nil {
			err = rev.Replace(earlier)
		}
		if err != nil {
			return rev, nil, err
		}
		rev.Supersedes = nil
	}
	if err = follow(t, &rev); err != nil {
		return rev, nil, err
	}
	if err := insertDecision(t, rev); err != nil {
		return rev, nil, err
	}
	rev.Current = !rev.Withdrawn
	notifications := notify(rev)
	if rev.Withdrawn {
		if err := dropUntold(t, *rev.Supersedes, notifications); err != nil {
			return rev, nil, err
		}
	}
	queued, err := queueNotifications(t, notices, notifications)
	return rev, queued, err
}

// errNotWithdrawn prevents that a decision and its mark are written to two files.
var errNotWithdrawn = bridge.Errorf(bridge.Unavailable, "Bridge cannot withdraw decisions while an older Bridge of this home runs, or a table of its store is lost: `bridge doctor` says more")

// dropUntold clears the message of sessions that only got the count of imported
// decisions, not the withdrawn one itself: they get a receipt alone (SEC-12).
func dropUntold(t *sqlitex.Tx, withdrawn string, notifications []decision.Notification) error {
	for i, n := range notifications {
		counted, err := t.Exists("SELECT EXISTS (SELECT 1 FROM decision_deliveries WHERE decision_id = ?1 AND session_key = ?2 AND message_id = '')", withdrawn, n.SessionKey)
		if err != nil {
			return err
		}
		if counted {
			notifications[i].Message.ID, notifications[i].Message.Recipient = "", ""
		}
	}
	return nil
}

func storedDecision(t *sqlitex.Tx, rev decision.Revision) (decision.Revision, []decision.Notification, error) {
	all, err := revisions(context.Background(), t, rev.Topic)
	if err != nil {
		return rev, nil, err
	}
	at := slices.IndexFunc(all, func(r decision.Revision) bool { return r.ID == rev.ID })
	if at < 0 || all[at].Text != rev.Text || all[at].Author.ID != rev.Author.ID {
		return rev, nil, bridge.Errorf(bridge.Conflict, "the decision id %s is taken by another decision", rev.ID)
	}
	return all[at], []decision.Notification{}, nil
}

// follow makes rev the newest revision of its topic. If another PC has decided on the
// topic too, the order depends on other clocks (newestFirst), which may be ahead. follow
// then raises rev's time, so that this decision is the newest.
func follow(t *sqlitex.Tx, rev *decision.Revision) error {
	mixed, err := t.Exists("SELECT EXISTS (SELECT 1 FROM decisions WHERE topic = ?1 AND instr(author_name, '/') > 0)", rev.Topic)
	if err != nil {
		return err
	}
	if !mixed {
		rows, err := t.Query(context.Background(), "SELECT id FROM decisions WHERE topic = ?1 ORDER BY revision DESC LIMIT 1", rev.Topic)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&rev.Supersedes) })
	}
	return eachRevision(context.Background(), t, rev.Topic, func(earlier decision.Revision, _ error) {
		if rev.Supersedes == nil {
			rev.Supersedes = &earlier.ID
		}
		rev.CreatedAt = max(rev.CreatedAt, earlier.CreatedAt+1)
	})
}

func insertDecision(t *sqlitex.Tx, rev decision.Revision) error {
	scope, err := json.Marshal(rev.Scope)
	if err != nil {
		return fmt.Errorf("storing decision %s: %w", rev.ID, err)
	}
	_, err = t.Exec(`INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at, source_message_id, supersedes)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
		rev.ID, rev.Topic, rev.Text, string(scope), rev.Author.ID, rev.Author.Name, string(rev.Author.Agent), rev.CreatedAt, rev.SourceMessageID, rev.Supersedes)
	if err == nil && rev.Withdrawn {
		err = markWithdrawn(t, rev.ID)
	}
	return err
}

func markWithdrawn(t *sqlitex.Tx, id string) error {
	_, err := t.Exec("INSERT OR IGNORE INTO withdrawn_decisions (decision_id) VALUES (?1)", id)
	return err
}

// queueNotifications stores the new receipts and, with each, its message by the statement
// notices.
func queueNotifications(t *sqlitex.Tx, notices string, notifications []decision.Notification) ([]decision.Notification, error) {
	queued := []decision.Notification{}
	for _, n := range notifications {
		inserted, err := t.Exec("INSERT OR IGNORE INTO decision_deliveries (decision_id, session_key, message_id, created_at) VALUES (?1, ?2, ?3, ?4)",
			n.DecisionID, n.SessionKey, n.Message.ID, n.Message.CreatedAt)
		if err != nil {
			return nil, err
		}
		if inserted == 0 || n.Message.Recipient == "" {
			continue
		}
		if _, err := insert(t, notices, n.Message); err != nil {
			return nil, err
		}
		queued = append(queued, n)
	}
	return queued, nil
}

// NotifyDecisions queues notifications of decisions recorded earlier, in one transaction and with the
// same receipts (DEC-12, DEC-13). It returns the queued ones. It fails if the store cannot be written.
func (d *DB) NotifyDecisions(ctx context.Context, notifications []decision.Notification) (queued []decision.Notification, err error) {
	if len(notifications) == 0 {
		return []decision.Notification{}, nil
	}
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) (err error) {
		queued, err = queueNotifications(t, d.notices, notifications)
		return err
	})
	if err == nil {
		err = d.sendOutbox(ctx)
	}
	if err != nil {
		return nil, err
	}
	return queued, nil
}

// insertOutbox is insertMessage into the outbox.
var insertOutbox = strings.Replace(insertMessage, "INTO messages", "INTO sidecar.outbox", 1)

// sendOutbox moves the notices that were just stored in the sidecar to their recipients.
func (d *DB) sendOutbox(ctx context.Context) error {
	if d.notices != insertOutbox {
		return nil
	}
	return d.writer.Do(ctx, upgrade.FlushOutbox)
}

// LinkDecisionReceipts copies every receipt of fromKey to the session key toKey: both are
// the same session (DEC-12). It fails with Storage if the store cannot be written.
func (d *DB) LinkDecisionReceipts(ctx context.Context, fromKey, toKey string) error {
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec(`INSERT OR IGNORE INTO decision_deliveries (decision_id, session_key, message_id, created_at)
			SELECT decision_id, ?2, message_id, created_at FROM decision_deliveries WHERE session_key = ?1`, fromKey, toKey)
		return err
	})
}

// maxNotices limits the notices of one topic: each session that starts gets its own.
const maxNotices = 1_000

// DecisionNotices returns the messages that notified sessions of the revisions of a topic,
// newest first, with archived ones. It fails with Storage if the store cannot be read.
func (r *Reader) DecisionNotices(ctx context.Context, topic string) ([]mail.HistoryRow, error) {
	var ids []string
	err := r.read(ctx, func(v view) error {
		ids = nil
		if !v.layout.decisions || !v.layout.receipts {
			return nil
		}
		rows, err := v.Query(ctx, `SELECT DISTINCT n.message_id FROM decision_deliveries n JOIN decisions d ON d.id = n.decision_id
			WHERE d.topic = ?1 AND n.message_id <> '' ORDER BY n.created_at DESC LIMIT ?2`, topic, maxNotices)
		return eachID(rows, err, func(id string) { ids = append(ids, id) })
	})
	if err != nil {
		return nil, err
	}
	return r.inOrder(ctx, ids)
}

// Delivered returns the receipts of the session key. It fails with Storage if they cannot be read.
func (r *Reader) Delivered(ctx context.Context, sessionKey string) (receipts decision.Receipts, err error) {
	err = r.read(ctx, func(v view) error {
		receipts = decision.Receipts{}
		if !v.layout.receipts {
			return nil
		}
		rows, err := v.Query(ctx, "SELECT decision_id, message_id FROM decision_deliveries WHERE session_key = ?1", sessionKey)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id, message string
			err := rows.Scan(sqlitex.Text(&id), sqlitex.Text(&message))
			receipts[id] = message
			return err
		})
	})
	return receipts, err
}

// eachID calls with for each row of a query for ids.
func eachID(rows *sql.Rows, err error, with func(id string)) error {
	return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(sqlitex.Text(&id))
		with(id)
		return err
	})
}

// Decisions returns the revisions that match lookup, newest first: the current ones, or
// with History all (DEC-08). It fails with Storage if the store cannot be read.
func (r *Reader) Decisions(ctx context.Context, lookup decision.Lookup) (found []decision.Revision, err error) {
	err = r.read(ctx, func(v view) error {
		found = []decision.Revision{}
		if !v.layout.decisions {
			return nil
		}
		lookup, err := widened(ctx, v, lookup)
		if err != nil {
			return err
		}
		all, err := revisions(ctx, v, lookup.Topic)
		for _, rev := range all {
			if (rev.Current || lookup.History) && lookup.Matches(rev) {
				found = append(found, rev)
			}
		}
		return err
	})
	return found, err
}

// widened returns lookup with all names and ids of the sessions that it lists.
func widened(ctx context.Context, v view, lookup decision.Lookup) (decision.Lookup, error) {
	if lookup.Scope == nil || len(lookup.Scope.Sessions) == 0 {
		return lookup, nil
	}
	peers, err := peersOf(ctx, v)
	known := make([]decision.Target, len(peers))
	for i, p := range peers {
		known[i] = decision.Target{ID: p.ID, Name: p.Name, Agent: p.Agent, SessionID: p.SessionID}
	}
	return lookup.Widen(known), err
}

// revisions returns every revision of a topic, or of all (""), newest first.
func revisions(ctx context.Context, q sqlitex.Querier, topic string) ([]decision.Revision, error) {
	var all []decision.Revision
	err := eachRevision(ctx, q, topic, func(rev decision.Revision, unread error) {
		if unread == nil {
			all = append(all, rev)
		}
	})
	return all, err
}

// eachRevision calls with for the revisions of a topic, or of all, newest first. unread
// is why one is unusable. It still replaces earlier ones: a damaged later decision does
// not restore an earlier one.
func eachRevision(ctx context.Context, q sqlitex.Querier, topic string, with func(rev decision.Revision, unread error)) error {
	all, err := readRevisions(ctx, q, topic)
	for _, revision := range all {
		with(revision.Revision, revision.Unread)
	}
	return err
}

// readRevisions returns the revisions of a topic, or of all, newest first. A Reader may
// read a store of any version.
func readRevisions(ctx context.Context, q sqlitex.Querier, topic string) (all []decision.OrderedRevision, err error) {
	team, withdrawn := "NULL, NULL FROM decisions", "false, "
	_, writes := q.(*sqlitex.Tx)
	v, reads := q.(view)
	if writes || reads && v.layout.team {
		team = "t.sequence, t.follows FROM decisions LEFT JOIN team_decisions t ON t.decision_id = id"
	}
	if writes || reads && v.layout.withdrawn {
		withdrawn = "EXISTS (SELECT 1 FROM withdrawn_decisions w WHERE w.decision_id = id), "
	}
	rows, err := q.Query(ctx, `SELECT revision, id, topic, body, scope, author_id, author_name, author_agent, created_at, source_message_id, supersedes, `+
		withdrawn+team+` WHERE ?1 = '' OR topic = ?1 ORDER BY revision DESC`, topic)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		revision, err := scanRevision(rows)
		all = append(all, revision)
		return err
	})
	return decision.NewestFirst(all), err
}

func scanRevision(rows *sql.Rows) (revision decision.OrderedRevision, err error) {
	var source, supersedes sql.NullString
	var scope string
	rev := &revision.Revision
	err = rows.Scan(sqlitex.Number(&revision.Place), sqlitex.Text(&rev.ID), sqlitex.Text(&rev.Topic), sqlitex.Text(&rev.Text), sqlitex.Text(&scope), sqlitex.Text(&rev.Author.ID), sqlitex.Text(&rev.Author.Name),
		sqlitex.Text((*string)(&rev.Author.Agent)), sqlitex.Number(&rev.CreatedAt), &source, &supersedes, &rev.Withdrawn, sqlitex.Number(&revision.Sequence), sqlitex.Text(&revision.Follows))
	if source.Valid {
		rev.SourceMessageID = &source.String
	}
	if supersedes.Valid {
		rev.Supersedes = &supersedes.String
	}
	revision.Scope, revision.Unread = decision.StoredScope(scope)
	return revision, err
}
