package schema

import (
	"context"
	"database/sql"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
)

// recently is how many of the newest messages are searched for the last one of a PC: an
// earlier one came long ago.
const recently = 1000

// LastFrom returns the creation time of the last message from the PC of these messages,
// by this PC's clock, in Unix milliseconds; 0 if it is long ago. The other clock's offset
// is only known as exactly as each frame's travel time. So a message counts as no older
// than the one before it. Only senders of other PCs have a slash in their ids. It fails
// if SQLite cannot read the messages.
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
