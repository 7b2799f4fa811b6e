package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/decision"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// UnreadableRow is a row that questions pass over, or a part of one that they do.
type UnreadableRow struct {
	Table string
	Key   string // what names the row: an id, or its place
	Topic string // of a decision
	Why   string // continues a sentence about the row
	Newer bool   // it may be the form of a newer release
	// Replaced says of a decision that a later one of its topic holds anyway.
	Replaced bool
}

// UnreadableDecisions lists the decisions that nobody is told of because they
// cannot be read, the newest first: of a topic its whole history, of all of them
// ("") what no later decision replaces. Whom they are for nobody knows, so that
// no scope leaves them out.
func (r *Reader) UnreadableDecisions(ctx context.Context, topic string) (found []UnreadableRow, err error) {
	err = r.read(ctx, func(v view) (err error) {
		found = []UnreadableRow{}
		if v.layout.decisions {
			found, err = unreadableDecisions(ctx, v, topic)
		}
		return err
	})
	if topic == "" {
		found = slices.DeleteFunc(found, func(row UnreadableRow) bool { return row.Replaced })
	}
	return found, err
}

func unreadableDecisions(ctx context.Context, q sqlitex.Querier, topic string) ([]UnreadableRow, error) {
	found := []UnreadableRow{}
	err := eachRevision(ctx, q, topic, func(rev decision.Revision, unread error) {
		var odd decision.Unreadable
		if errors.As(unread, &odd) {
			found = append(found, UnreadableRow{Table: "decisions", Key: rev.ID, Topic: rev.Topic, Why: odd.Why, Newer: odd.Newer, Replaced: !rev.Current})
		}
	})
	return found, err
}

// jsonColumns are those that hold JSON in the databases of a home, besides the
// scopes of decisions. form says, in SQL, which values c claim to be JSON; one
// that is whole but of another shape may be a newer release's.
var jsonColumns = []struct{ table, column, form, shape string }{
	{"session_bindings", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"peer_names", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"peer_name_owners", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"questions", "record", `true`, `json_type(c) = 'object'`},
}

// UnreadableRows looks through the database at path, like Inspect, for rows whose
// JSON cannot be read.
func UnreadableRows(ctx context.Context, path string, live bool) (found []UnreadableRow, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		found = []UnreadableRow{}
		_, tables, err := schema.Read(ctx, pool)
		if err != nil {
			return err
		}
		if tables["decisions"] != "" {
			if found, err = unreadableDecisions(ctx, sqlitex.OnPool(pool), ""); err != nil {
				return err
			}
		}
		for _, one := range jsonColumns {
			if !strings.Contains(" "+tables[one.table]+" ", " "+one.column+" ") {
				continue
			}
			rows, err := pool.QueryContext(ctx, fmt.Sprintf(`SELECT place, json_valid(c) FROM (SELECT rowid AS place, CAST(%s AS TEXT) AS c FROM %s)
				WHERE %s AND NOT iif(json_valid(c), %s, false) LIMIT 100`, one.column, one.table, one.form, one.shape))
			err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
				row := UnreadableRow{Table: one.table, Why: one.column + " is not valid JSON"}
				var place int64
				err := rows.Scan(&place, &row.Newer)
				row.Key = fmt.Sprint("row ", place)
				if row.Newer {
					row.Why = one.column + " has an unknown shape"
				}
				found = append(found, row)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, sqlitex.Error(path, err)
}
