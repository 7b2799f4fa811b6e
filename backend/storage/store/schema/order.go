package schema

import (
	"context"
	"database/sql"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
)

// recently is among how many of the newest messages the last one of a PC is looked for:
// before so many others it came long ago.
const recently = 1000

// LastFrom is when what came last from the PC that these messages are from was made, by
// this PC's clock, in Unix milliseconds; 0 where that is long ago. How far the other clock
// is behind is only known as well as how long each frame took: what came behind another
// one counts as no older than it. Only senders of other PCs have a slash in their ids.
func LastFrom(t *sqlitex.Tx, msgs []bridge.Message) (last int64, err error) {
	if len(msgs) == 0 {
		return 0, nil
	}
	host, _, _ := strings.Cut(msgs[0].From.ID, "/")
	rows, err := t.Query(context.Background(), `SELECT created_at FROM messages WHERE rowid > (SELECT max(rowid) FROM messages) - ?3
		AND from_id >= ?1 AND from_id < ?2 ORDER BY rowid DESC LIMIT 1`, host+"/", host+"0", recently)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(sqlitex.Number(&last)) })
	return last, err
}
