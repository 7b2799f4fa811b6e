package store

import (
	"context"
	"database/sql"

	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

// briefChars is how many characters of a body a brief list has.
const briefChars = 200

// Since returns the newest messages sent at since, in Unix milliseconds, or later, newest
// first, with the beginning of their bodies. It does not read the archive, because archived
// messages are old. It fails with Storage if the store cannot be read.
func (r *Reader) Since(ctx context.Context, since int64, limit int) (history []mail.HistoryRow, err error) {
	err = r.read(ctx, func(v view) error {
		stamps, err := v.newest(ctx, limit)
		if err != nil {
			return err
		}
		var ids []string
		for _, s := range stamps {
			if s.At >= since {
				ids = append(ids, s.ID)
			}
		}
		brief := v.layout
		brief.brief = true
		found, err := deliveriesOf(ctx, v, brief, ids)
		if err != nil {
			return err
		}
		history = group(ids, found)
		return v.cross(ctx, history)
	})
	return history, err
}

// Hour counts the messages and wakes of an hour. From is its begin, Unix milliseconds.
type Hour struct {
	From            int64
	Messages, Wakes int
}

// millisPerHour is the number of milliseconds in an hour.
const millisPerHour = 60 * 60 * 1000

// Hours returns the messages and wakes of each of the last hours before now, oldest first.
// Messages count as in CountSince. A wake is one session woken once, by any amount of mail
// from these hours. It fails with Storage if the store cannot be read.
func (r *Reader) Hours(ctx context.Context, now int64, hours int) (counted []Hour, err error) {
	since := now - int64(hours)*millisPerHour
	err = r.read(ctx, func(v view) error {
		counted = make([]Hour, hours)
		for i := range counted {
			counted[i].From = since + int64(i)*millisPerHour
		}
		if !v.layout.messages {
			return nil
		}
		err := v.perHour(ctx, "(created_at - ?1) / ?2", oneMessage, "FROM messages WHERE true", since, func(hour int64, n int) { counted[hour].Messages = n }, hours)
		if err != nil || !v.layout.stages {
			return err
		}
		return v.perHour(ctx, "(s.woken_at - ?1) / ?2", "messages.recipient || ' ' || s.woken_at",
			"FROM messages CROSS JOIN delivery_stages s ON s.message_id = messages.id AND s.recipient = messages.recipient WHERE s.woken_at >= ?1",
			since, func(hour int64, n int) { counted[hour].Wakes = n }, hours)
	})
	return counted, err
}

// perHour counts the distinct values of what in each hour since a time, of messages sent
// since then.
func (v view) perHour(ctx context.Context, hour, what, from string, since int64, count func(hour int64, n int), hours int) error {
	rows, err := v.Query(ctx, "SELECT "+hour+" AS hour, count(DISTINCT "+what+") "+from+" AND "+sentSince+" GROUP BY hour", since, millisPerHour)
	return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var at int64
		var n int
		if err := rows.Scan(sqlitex.Number(&at), &n); err != nil {
			return err
		}
		if at >= 0 && at < int64(hours) {
			count(at, n)
		}
		return nil
	})
}
