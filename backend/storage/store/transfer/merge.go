package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// mergeBatch is how many rows are merged between two checks of the context.
const mergeBatch = 2000

// Merge configures MergeMessages. The home must have no writer.
type Merge struct {
	Store   string // the primary store
	Archive string // the message archive; it may be missing
	From    string // a copy made by CopyMessages, without a writer
	// Step, if set, is called before each step; its error rolls back the whole merge.
	Step func(name string) error
	// Told, if set, is called with the number of merged rows and of all missing rows.
	Told func(done, all int)
}

// Merged counts the rows of a copy, one per recipient of a message.
type Merged struct {
	Messages int `json:"messages"` // missing and merged
	Archived int `json:"archived"` // missing and merged as archived ones
	Routes   int `json:"routes"`   // missing routes of delegated jobs, merged
	Present  int `json:"present"`  // existing and left unchanged
	// Unread counts the existing rows that are unread here and read in the copy: existing
	// rows are not changed.
	Unread int `json:"unread"`
}

// Missing returns how many rows were missing.
func (m Merged) Missing() int { return m.Messages + m.Archived + m.Routes }

// PreviewMerge returns what MergeMessages would do, and changes nothing. It fails with
// bridge.Conflict if the store or the archive has a message with other content.
func PreviewMerge(ctx context.Context, m Merge) (would Merged, err error) {
	work, err := openMerge(ctx, m)
	if err != nil {
		return would, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	return work.done, sqlitex.Error(m.Store, work.plan(ctx))
}

// MergeMessages adds the messages that the store and its archive lack of a copy, in one
// transaction. It changes no existing row (STO-16). A message is identified by its id and
// recipient, in whichever table. Only the written message is its content, not the time of
// reading. A message that was read, here or in the copy, is merged as read; others are
// ordinary mail again. It fails as PreviewMerge does, and with Unsupported before the store
// is upgraded.
func MergeMessages(ctx context.Context, m Merge) (done Merged, err error) {
	work, err := openMerge(ctx, m)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	if err := work.tx.Begin(); err != nil {
		return done, sqlitex.Error(m.Store, err)
	}
	if err := work.run(ctx); err != nil {
		work.tx.Rollback()
		return done, sqlitex.Error(m.Store, err)
	}
	return work.done, work.step("committed the merge")
}

// merger works on one connection with the copy and the archive attached, as snap and
// archive.
type merger struct {
	Merge
	pool *sql.DB
	tx   *sqlitex.Tx
	done Merged
}

// openMerge attaches the three databases and creates the lists of missing rows.
func openMerge(ctx context.Context, m Merge) (*merger, error) {
	found, err := schema.Identify(ctx, m.Store)
	if err == nil && (found.Version != schema.Version || found.Deliveries != schema.DeliveriesVersion) {
		err = bridge.Errorf(bridge.Unsupported, "the store %s has schema version %d: start the broker once to upgrade it, then merge", m.Store, found.Version)
	}
	if err == nil {
		err = schema.RequireWhole(ctx, m.Store)
	}
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(m.Store)+"&_pragma=temp_store(2)&_pragma=wal_autocheckpoint(2000)")
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", m.Store, err)
	}
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(sqlitex.Error(m.Store, err), pool.Close())
	}
	work := &merger{Merge: m, pool: pool, tx: sqlitex.NewTx(conn)}
	_, err = conn.ExecContext(ctx, `ATTACH DATABASE ? AS snap`, "file:"+sqlitex.EscapePath(m.From)+"?mode=ro&immutable=1")
	if err == nil {
		err = attachArchive(ctx, conn, m.Archive)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `CREATE TEMP TABLE missing_messages (place INTEGER PRIMARY KEY, row INTEGER NOT NULL);
			CREATE TEMP TABLE missing_archived_messages (place INTEGER PRIMARY KEY, row INTEGER NOT NULL)`)
	}
	if err != nil {
		return nil, errors.Join(sqlitex.Error(m.Store, err), work.close())
	}
	return work, nil
}

// attachArchive attaches the archive, or an empty one if there is none.
func attachArchive(ctx context.Context, conn *sql.Conn, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		_, err := conn.ExecContext(ctx, `ATTACH DATABASE ':memory:' AS archive; CREATE TABLE archive.archived_messages AS SELECT * FROM main.archived_messages WHERE false`)
		return err
	}
	if err := schema.CheckArchive(ctx, path); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "ATTACH DATABASE ? AS archive", path)
	return err
}

func (w *merger) close() error { return errors.Join(w.tx.Close(), w.pool.Close()) }

func (w *merger) step(name string) error {
	if w.Step == nil {
		return nil
	}
	return w.Step(name)
}

// storedRows counts the rows of the tables that a merge fills.
const storedRows = "SELECT (SELECT count(*) FROM main.messages) + (SELECT count(*) FROM main.archived_messages) + (SELECT count(*) FROM main.job_delivery_routes)"

// run performs the whole merge in the open transaction and commits it.
func (w *merger) run(ctx context.Context) error {
	if err := schema.CatchUp(w.tx); err != nil { // so that the lists lack only merged rows
		return err
	}
	if err := w.plan(ctx); err != nil {
		return err
	}
	before, err := w.number(storedRows)
	if err != nil {
		return err
	}
	for _, bring := range []func(context.Context) error{w.bringArchived, w.bringMessages, w.bringRoutes, w.bringCrossings, w.bringLists} {
		if err := bring(ctx); err != nil {
			return err
		}
	}
	if err := w.step("verify the merge"); err != nil {
		return err
	}
	after, err := w.number(storedRows)
	if err == nil && after != before+w.done.Missing() {
		err = fmt.Errorf("the store would have %d rows, not %d", after, before+w.done.Missing())
	}
	if err == nil {
		err = w.step("commit the merge")
	}
	if err == nil {
		_, err = w.tx.Exec("COMMIT")
	}
	return err
}

// sameIdentity states, in SQL, that a and m are one delivery.
const sameIdentity = "a.id IS m.id AND a.recipient IS m.recipient"

// stored returns an SQL condition: some table of the home has a row a that meets the
// condition.
func stored(condition string) string {
	var tables []string
	for _, table := range []string{"main.messages", "main.archived_messages", "archive.archived_messages"} {
		tables = append(tables, "EXISTS (SELECT 1 FROM "+table+" a WHERE "+condition+")")
	}
	return "(" + strings.Join(tables, " OR ") + ")"
}

// movedInCopy selects the rows that are in the copy a second time: they were copied,
// moved to the archive, and copied there again.
var movedInCopy = map[string]string{
	"messages":          `EXISTS (SELECT 1 FROM snap.archived_messages a WHERE ` + sameIdentity + ` AND ` + schema.SameContent + `)`,
	"archived_messages": `EXISTS (SELECT 1 FROM snap.archived_messages a WHERE ` + sameIdentity + ` AND ` + schema.SameContent + ` AND a.rowid > m.rowid)`,
}

// reassigned states that unread mail m of the copy was moved to another recipient since
// (DB.Reassign). The message has a recipient that the copy lacks, and nothing else adds a
// recipient to a stored message.
const reassigned = `m.read_at IS NULL AND EXISTS (SELECT 1 FROM (
		SELECT recipient FROM main.messages WHERE id IS m.id
		UNION ALL SELECT recipient FROM main.archived_messages WHERE id IS m.id
		UNION ALL SELECT recipient FROM archive.archived_messages WHERE id IS m.id) a
	WHERE NOT EXISTS (SELECT 1 FROM snap.messages s WHERE s.id IS m.id AND s.recipient IS a.recipient)
		AND NOT EXISTS (SELECT 1 FROM snap.archived_messages s WHERE s.id IS m.id AND s.recipient IS a.recipient))`

// plan fails on conflicts, lists the missing rows and counts them.
func (w *merger) plan(ctx context.Context) (err error) {
	all := 0
	for _, table := range []string{"archived_messages", "messages"} {
		if err := errors.Join(ctx.Err(), w.refuseConflicts(table)); err != nil {
			return err
		}
		// The newest gets place -1: merged rows come before all existing ones.
		_, err := w.tx.Exec(fmt.Sprintf(`INSERT INTO temp.missing_%[1]s (place, row)
			SELECT -row_number() OVER (ORDER BY m.created_at DESC, m.rowid DESC), m.rowid FROM snap.%[1]s m
			WHERE NOT %[2]s AND NOT (%[3]s) AND NOT (%[4]s)`, table, stored(sameIdentity), movedInCopy[table], reassigned))
		if err != nil {
			return err
		}
		count, err := w.number("SELECT count(*) FROM snap." + table)
		if err != nil {
			return err
		}
		all += count
	}
	if w.done.Messages, err = w.number("SELECT count(*) FROM temp.missing_messages"); err != nil {
		return err
	}
	if w.done.Archived, err = w.number("SELECT count(*) FROM temp.missing_archived_messages"); err != nil {
		return err
	}
	if w.done.Routes, err = w.number("SELECT count(*) FROM snap.job_delivery_routes r WHERE NOT EXISTS (SELECT 1 FROM main.job_delivery_routes a WHERE a.id = r.id)"); err != nil {
		return err
	}
	routes, err := w.number("SELECT count(*) FROM snap.job_delivery_routes")
	if err != nil {
		return err
	}
	w.done.Present = all + routes - w.done.Missing()
	w.done.Unread, err = w.number(`SELECT count(*) FROM (SELECT id, recipient FROM snap.messages WHERE read_at IS NOT NULL
		UNION SELECT id, recipient FROM snap.archived_messages WHERE read_at IS NOT NULL) m
		JOIN main.messages a ON ` + sameIdentity + ` AND a.read_at IS NULL`)
	return err
}

// namedConflicts is how many conflicts are named; the rest is counted.
const namedConflicts = 10

// refuseConflicts fails with Conflict if a delivery of the copy is stored, and nowhere
// with the same content.
func (w *merger) refuseConflicts(table string) error {
	var named []string
	count := 0
	rows, err := w.tx.Query(context.Background(), fmt.Sprintf(`SELECT ifnull(m.id, ''), ifnull(m.recipient, '') FROM snap.%s m WHERE %s AND NOT %s ORDER BY m.rowid`,
		table, stored(sameIdentity), stored(sameIdentity+" AND "+schema.SameContent)))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var id, recipient string
		if count++; count > namedConflicts {
			return nil
		}
		err := rows.Scan(&id, &recipient)
		named = append(named, id+" for "+recipient)
		return err
	})
	if err != nil || count == 0 {
		return err
	}
	more := ""
	if count > namedConflicts {
		more = fmt.Sprintf(" and %d more", count-namedConflicts)
	}
	return bridge.Errorf(bridge.Conflict, "the backup and this home have the same message with different content: %s%s. Nothing was merged; compare both and move one of them away by hand",
		strings.Join(named, ", "), more)
}

// inBatches runs a statement for the places of a list of count rows, from ?1 to before
// ?2.
func (w *merger) inBatches(ctx context.Context, name string, count, before int, statement string, args ...any) error {
	for first := -count; first < 0; first += mergeBatch {
		if err := errors.Join(ctx.Err(), w.step("merge "+name)); err != nil {
			return err
		}
		if _, err := w.tx.Exec(statement, append([]any{first, min(first+mergeBatch, 0)}, args...)...); err != nil {
			return err
		}
		if w.Told != nil {
			w.Told(before+count+min(first+mergeBatch, 0), w.done.Missing())
		}
	}
	return nil
}

func (w *merger) bringArchived(ctx context.Context) error {
	const columns = schema.MessageColumns + ", archive_reason, archived_at"
	return w.inBatches(ctx, "archived_messages", w.done.Archived, 0, `INSERT INTO main.archived_messages (`+columns+`)
		SELECT `+columns+` FROM temp.missing_archived_messages CROSS JOIN snap.archived_messages m ON m.rowid = row WHERE place >= ?1 AND place < ?2`)
}

// bringMessages gives the rows negative row ids below all others, so that none looks
// newer than later messages. Lists order them by time (MergedLast). The index serves
// these lists and costs no send anything.
func (w *merger) bringMessages(ctx context.Context) error {
	if w.done.Messages == 0 {
		return nil
	}
	if _, err := w.tx.Exec("CREATE INDEX IF NOT EXISTS main.messages_merged ON messages (created_at) WHERE rowid < 0"); err != nil {
		return err
	}
	lowest, err := w.number("SELECT min(0, ifnull(min(rowid), 0)) FROM main.messages")
	if err != nil {
		return err
	}
	return w.inBatches(ctx, "messages", w.done.Messages, w.done.Archived, `INSERT INTO main.messages (rowid, `+schema.MessageColumns+`)
		SELECT ?3 + place, m.id, m.recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at,
			coalesce(read_at, (SELECT consumed_at FROM main.delivery_stages s WHERE s.message_id = m.id AND s.recipient = m.recipient))
		FROM temp.missing_messages CROSS JOIN snap.messages m ON m.rowid = row WHERE place >= ?1 AND place < ?2`, lowest)
}

func (w *merger) bringRoutes(context.Context) error {
	if err := w.step("merge job_delivery_routes"); err != nil {
		return err
	}
	_, err := w.tx.Exec(`INSERT INTO main.job_delivery_routes (id, recipient, consumed_at)
		SELECT id, recipient, consumed_at FROM snap.job_delivery_routes r WHERE NOT EXISTS (SELECT 1 FROM main.job_delivery_routes a WHERE a.id = r.id)`)
	return err
}

// backAgain is why merged mail for a paired PC is not sent. The copy has only messages
// (STO-10), so it is unknown whether the mail reached that PC. Mail with an unknown
// outcome is never sent again automatically.
const backAgain = "it came back from a backup of messages, which does not say whether it reached that PC: send it again where that is needed"

// bringCrossings marks merged mail for paired PCs as refused if the store has no other
// record of it. The PC, if the store knows it by other mail, may still report that it has
// the mail.
func (w *merger) bringCrossings(context.Context) error {
	if err := w.step("merge remote_outbox"); err != nil {
		return err
	}
	_, err := w.tx.Exec(`WITH pcs AS (SELECT substr(recipient, 1, instr(recipient, '/')) AS host, pc, max(place) FROM main.remote_outbox GROUP BY host)
		INSERT INTO main.remote_outbox (message_id, recipient, pc, state, changed_at, words)
		SELECT m.id, m.recipient, ifnull((SELECT pc FROM pcs WHERE host = substr(m.recipient, 1, instr(m.recipient, '/'))), ''), 'refused', CAST(unixepoch('subsec') * 1000 AS INTEGER), ?1
		FROM temp.missing_messages CROSS JOIN snap.messages s ON s.rowid = row CROSS JOIN main.messages m ON m.id = s.id AND m.recipient = s.recipient
		WHERE instr(m.recipient, '/') > 1 AND m.read_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM main.remote_outbox o WHERE o.message_id = m.id AND o.recipient = m.recipient)`, backAgain)
	return err
}

// bringLists completes the data derived from messages: the lists of conversations, and
// which messages were answered.
func (w *merger) bringLists(context.Context) error {
	if err := w.step("merge the lists"); err != nil {
		return err
	}
	for _, table := range []string{"messages", "archived_messages"} {
		missing := fmt.Sprintf("temp.missing_%[1]s CROSS JOIN snap.%[1]s m ON m.rowid = row", table)
		_, err := w.tx.Exec(`INSERT OR IGNORE INTO main.message_peers (peer, created_at, message_id)
			SELECT recipient, created_at, id FROM ` + missing + ` UNION ALL SELECT from_id, created_at, id FROM ` + missing)
		if err != nil {
			return err
		}
		if err := schema.MarkAnswers(w.tx, "snap."+table, "true"); err != nil {
			return err
		}
	}
	return schema.Followed(w.tx)
}

// number returns the result of a query of one integer.
func (w *merger) number(query string) (n int, err error) {
	rows, err := w.tx.Query(context.Background(), query)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}
