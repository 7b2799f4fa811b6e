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

// UnreadableRow is a row that queries skip, wholly or in part.
type UnreadableRow struct {
	Table string
	Key   string // names the row: an id or a row number
	Topic string // of a decision
	Why   string // continues a sentence about the row
	Newer bool   // it may be of a newer release
	// Replaced is set for a decision that a later one of its topic replaces anyway.
	Replaced bool
}

// UnreadableDecisions returns the decisions of which no session is notified because they
// are unreadable, newest first. For a topic it returns its whole history, for all topics
// ("") those that no later decision replaces. Their scope is unknown, so no scope excludes
// them. It fails with Storage if the store cannot be read.
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

// jsonColumns are the columns that hold JSON in the databases of a home, besides the
// scopes of decisions. form selects, in SQL, the values c that claim to be JSON. A valid
// value of another shape may be of a newer release.
var jsonColumns = []struct{ table, column, form, shape string }{
	{"session_bindings", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"peer_names", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"peer_name_owners", "identity", `c LIKE '[%'`, `json_array_length(c) = 5`},
	{"questions", "record", `true`, `json_type(c) = 'object'`},
}

// UnreadableRows returns the rows of the database at path whose JSON is unreadable. It
// reads the file like Inspect, and fails with Storage if it cannot.
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
		for _, jsonColumn := range jsonColumns {
			if !strings.Contains(" "+tables[jsonColumn.table]+" ", " "+jsonColumn.column+" ") {
				continue
			}
			rows, err := pool.QueryContext(ctx, fmt.Sprintf(`SELECT place, json_valid(c) FROM (SELECT rowid AS place, CAST(%s AS TEXT) AS c FROM %s)
				WHERE %s AND NOT iif(json_valid(c), %s, false) LIMIT 100`, jsonColumn.column, jsonColumn.table, jsonColumn.form, jsonColumn.shape))
			err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
				row := UnreadableRow{Table: jsonColumn.table, Why: jsonColumn.column + " is not valid JSON"}
				var place int64
				err := rows.Scan(&place, &row.Newer)
				row.Key = fmt.Sprint("row ", place)
				if row.Newer {
					row.Why = jsonColumn.column + " has an unknown shape"
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
