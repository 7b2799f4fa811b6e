package store

import (
	"context"
	"database/sql"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/sqlitex"
)

// Import stores the missing decisions of a paired PC in one commit and returns their number
// (RMT-22). It sets the decision that each supersedes. It fails with Unavailable while the
// upgrade is deferred, and with Storage if the store cannot be written.
func (d Remote) Import(ctx context.Context, revisions []decision.Revision, pc string) (inserted int, err error) {
	if d.deferred() {
		return 0, errBesideOlder
	}
	for i := range revisions {
		if revisions[i], err = d.withKnownSource(ctx, revisions[i]); err != nil {
			return 0, err
		}
	}
	now := d.now().UnixMilli()
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		inserted = 0
		for _, rev := range revisions {
			known, err := t.Exists("SELECT EXISTS (SELECT 1 FROM decisions WHERE id = ?1)", rev.ID)
			if err != nil {
				return err
			}
			if known {
				if err := learnWithdrawn(t, rev, pc); err != nil {
					return err
				}
				continue
			}
			if err := importDecision(t, rev, pc, now); err != nil {
				return err
			}
			inserted++
		}
		return nil
	})
	return inserted, err
}

// learnWithdrawn marks an earlier withdrawal from that PC. At that time, this PC or a
// link between them did not know the mark.
func learnWithdrawn(t *sqlitex.Tx, rev decision.Revision, pc string) error {
	if !rev.Withdrawn {
		return nil
	}
	_, err := t.Exec(`INSERT OR IGNORE INTO withdrawn_decisions (decision_id) SELECT d.id FROM decisions d JOIN remote_decisions i ON i.decision_id = d.id
		WHERE d.id = ?1 AND i.pc = ?2 AND d.topic = ?3 AND d.body = ?4`, rev.ID, pc, rev.Topic, rev.Text)
	return err
}

func importDecision(t *sqlitex.Tx, rev decision.Revision, pc string, now int64) error {
	rows, err := t.Query(context.Background(), `SELECT id FROM decisions WHERE topic = ?1 AND (created_at, id) < (?2, ?3)
		ORDER BY created_at DESC, id DESC LIMIT 1`, rev.Topic, rev.CreatedAt, rev.ID)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&rev.Supersedes) })
	if err == nil {
		err = insertDecision(t, rev)
	}
	if err == nil {
		_, err = t.Exec("INSERT OR IGNORE INTO remote_decisions (decision_id, pc, arrived_at) VALUES (?1, ?2, ?3)", rev.ID, pc, now)
	}
	return err
}

// Imported returns the decisions from a paired PC that are the newest on their topics:
// those in force, and withdrawals. It fails with Storage if the store cannot be read.
func (d Remote) Imported(ctx context.Context, pc string) (newest []decision.Revision, err error) {
	from := map[string]bool{}
	err = d.read(ctx, func(v view) error {
		clear(from)
		rows, err := v.Query(ctx, "SELECT decision_id FROM remote_decisions WHERE pc = ?1", pc)
		return eachID(rows, err, func(id string) { from[id] = true })
	})
	if err != nil || len(from) == 0 {
		return nil, err
	}
	all, err := d.Decisions(ctx, decision.Lookup{History: true})
	return slices.DeleteFunc(decision.Newest(all), func(rev decision.Revision) bool { return !from[rev.ID] }), err
}

// LastDecision returns the number of the last recorded decision, so that a change is
// detected without reading them. It fails with Storage if the store cannot be read.
func (d Remote) LastDecision(ctx context.Context) (last int64, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, "SELECT ifnull(max(revision), 0) FROM decisions")
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&last) })
	})
	return last, err
}

// Shareable returns this PC's decisions for all sessions, in the order that all PCs see. It
// fails with Storage if the store cannot be read.
func (d Remote) Shareable(ctx context.Context) ([]decision.Revision, error) {
	all, err := d.Decisions(ctx, decision.Lookup{History: true})
	own := slices.DeleteFunc(all, func(rev decision.Revision) bool {
		return !rev.Scope.All || bridge.CheckName(rev.Author.Name) != nil
	})
	slices.SortFunc(own, decision.ByTime)
	return own, err
}

// DecidedAfter returns the decisions of Shareable that were recorded after the one that
// LastDecision returned. It fails with Storage if the store cannot be read.
func (d Remote) DecidedAfter(ctx context.Context, last int64) ([]decision.Revision, error) {
	after := map[string]bool{}
	err := d.read(ctx, func(v view) error {
		clear(after)
		rows, err := v.Query(ctx, "SELECT id FROM decisions WHERE revision > ?1", last)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(sqlitex.Text(&id))
			after[id] = true
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	own, err := d.Shareable(ctx)
	return slices.DeleteFunc(own, func(rev decision.Revision) bool { return !after[rev.ID] }), err
}
