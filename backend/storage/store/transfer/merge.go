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

// mergeBatch is how many rows are brought back between two looks at the context.
const mergeBatch = 2000

// Merge says what MergeMessages brings where. The home must have no writer.
type Merge struct {
	Store   string // the primary store
	Archive string // the message archive; it may not be there
	From    string // a copy that CopyMessages made and nobody writes
	// Step, when set, is told each step before it happens; its error undoes the
	// whole merge.
	Step func(name string) error
	// Told, when set, hears how many of all missing rows are in.
	Told func(done, all int)
}

// Merged counts the rows of a copy, one per recipient of a message.
type Merged struct {
	Messages int `json:"messages"` // missing and brought back
	Archived int `json:"archived"` // missing and brought back as archived ones
	Routes   int `json:"routes"`   // missing routes of delegated jobs, brought back
	Present  int `json:"present"`  // already there, and left as they are
	// Unread are those of the present ones that wait to be read here, and that the
	// copy has as read: a row that is there is not changed.
	Unread int `json:"unread"`
}

// Missing is how many rows were not there.
func (m Merged) Missing() int { return m.Messages + m.Archived + m.Routes }

// LookMerge says what MergeMessages would do, and changes nothing. A message
// that the store or the archive has with other content is bridge.Conflict.
func LookMerge(ctx context.Context, m Merge) (would Merged, err error) {
	work, err := openMerge(ctx, m)
	if err != nil {
		return would, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	return work.done, sqlitex.Error(m.Store, work.plan(ctx))
}

// MergeMessages brings back what the store and its archive lack of a copy of
// messages, in one transaction, and changes no row that is there (STO-16). A
// message belongs to its id and recipient: which of the tables has it does not
// matter, and only what was written counts as its content, not whether it was
// read since. What was read, here or in the copy, comes back as read; what was
// not is ordinary mail again.
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

// merger works on one connection to which the copy and the archive are attached,
// as snap and archive.
type merger struct {
	Merge
	pool *sql.DB
	tx   *sqlitex.Tx
	done Merged
}

// openMerge attaches the three databases and makes the lists of missing rows.
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

// attachArchive attaches the archive, or an empty one where there is none.
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

// run does the whole merge inside the open transaction and commits it.
func (w *merger) run(ctx context.Context) error {
	if err := schema.CatchUp(w.tx); err != nil { // so that only what comes back is missing in the lists
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

// sameIdentity says, in SQL, that a and m are one delivery.
const sameIdentity = "a.id IS m.id AND a.recipient IS m.recipient"

// stored says, in SQL, that some table of the home has a row a to which the
// condition applies.
func stored(condition string) string {
	var tables []string
	for _, table := range []string{"main.messages", "main.archived_messages", "archive.archived_messages"} {
		tables = append(tables, "EXISTS (SELECT 1 FROM "+table+" a WHERE "+condition+")")
	}
	return "(" + strings.Join(tables, " OR ") + ")"
}

// movedInCopy says which rows of the copy are in it a second time: they were
// copied, moved on to the archive, and were copied there again.
var movedInCopy = map[string]string{
	"messages":          `EXISTS (SELECT 1 FROM snap.archived_messages a WHERE ` + sameIdentity + ` AND ` + schema.SameContent + `)`,
	"archived_messages": `EXISTS (SELECT 1 FROM snap.archived_messages a WHERE ` + sameIdentity + ` AND ` + schema.SameContent + ` AND a.rowid > m.rowid)`,
}

// reassigned says that unread mail m of the copy went to another recipient
// since (DB.Reassign): the message has one that the copy does not know, and
// nothing else gives a stored message a new one.
const reassigned = `m.read_at IS NULL AND EXISTS (SELECT 1 FROM (
		SELECT recipient FROM main.messages WHERE id IS m.id
		UNION ALL SELECT recipient FROM main.archived_messages WHERE id IS m.id
		UNION ALL SELECT recipient FROM archive.archived_messages WHERE id IS m.id) a
	WHERE NOT EXISTS (SELECT 1 FROM snap.messages s WHERE s.id IS m.id AND s.recipient IS a.recipient)
		AND NOT EXISTS (SELECT 1 FROM snap.archived_messages s WHERE s.id IS m.id AND s.recipient IS a.recipient))`

// plan refuses conflicts, lists what is missing and counts it.
func (w *merger) plan(ctx context.Context) (err error) {
	all := 0
	for _, table := range []string{"archived_messages", "messages"} {
		if err := errors.Join(ctx.Err(), w.refuseConflicts(table)); err != nil {
			return err
		}
		// The newest gets the place -1: what comes back stands before all that is there.
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

// refuseConflicts is Conflict when a delivery of the copy is stored, and nowhere
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

// inBatches runs a statement for the places from ?1 to before ?2 of a list that
// has count of them.
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

// bringMessages gives the rows places below all others, which are negative, so
// that none of them looks newer than what came after it; lists take them by
// their time (MergedLast). The index is for these lists, and no send pays for it.
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

// backAgain is why mail for a paired PC goes nowhere that came back from a copy. The
// copy has messages alone (STO-10): whether it reached that PC nobody knows, and what is
// unclear is never sent again by itself.
const backAgain = "it came back from a backup of messages, which does not say whether it reached that PC: send it again where that is needed"

// bringCrossings ends the waiting of mail for paired PCs that came back and that the
// store knows nothing else of. The PC, where the store knows it by other mail, may still
// tell that it has it.
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

// bringLists makes whole what is derived from messages: the lists of
// conversations, and which messages were answered.
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

// number runs a query of one whole number.
func (w *merger) number(query string) (n int, err error) {
	rows, err := w.tx.Query(context.Background(), query)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}
