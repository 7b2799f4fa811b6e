package store

import (
	"context"
	"database/sql"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Crossings is the result of a check of the tables about paired PCs.
type Crossings struct {
	Odd     []UnreadableRow // rows with impossible content
	Waiting []Queue
}

// Queue describes the messages that wait for one paired PC.
type Queue struct {
	Host  string // as the senders named it
	Count int
	Since int64 // creation of the oldest, Unix milliseconds
}

// maxOdd limits the reported rows of one kind.
const maxOdd = 100

// oddCrossings are queries for rows that no Bridge writes, by table. Each returns the
// row's name and what is wrong, and states whether a newer release may have written it.
var oddCrossings = []struct {
	table, query string
	newer        bool
}{
	{"remote_outbox", `SELECT place, 'it names no session of a paired PC' FROM remote_outbox
		WHERE typeof(message_id) <> 'text' OR typeof(pc) <> 'text' OR typeof(recipient) <> 'text' OR instr(recipient, '/') < 2`, false},
	{"remote_outbox", `SELECT message_id, 'its state is none that this Bridge writes' FROM remote_outbox
		WHERE typeof(message_id) = 'text' AND state NOT IN ('` + crossingWaiting + `', '` + crossingAtHub + `', '` + crossingArrived + `', '` + crossingRefused + `', '` + crossingExpired + `')`, true},
	{"remote_outbox", `SELECT message_id, 'it waits, and its message is gone: nothing can be sent' FROM remote_outbox o
		WHERE typeof(message_id) = 'text' AND instr(recipient, '/') > 1 AND state = '` + crossingWaiting + `' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = o.message_id AND m.recipient = o.recipient)`, false},
	{"remote_inbox", `SELECT message_id, 'its counts of what is known cannot be' FROM remote_inbox
		WHERE typeof(message_id) <> 'text' OR typeof(pc) <> 'text' OR typeof(news) <> 'integer' OR typeof(told) <> 'integer' OR told > news OR told < 0`, false},
	{"remote_decisions", `SELECT decision_id, 'it came from a paired PC, and is not here' FROM remote_decisions i
		WHERE NOT EXISTS (SELECT 1 FROM decisions d WHERE d.id = i.decision_id)`, false},
	{"team_decisions", `SELECT decision_id, 'it came by the team, and is not here' FROM team_decisions t
		WHERE NOT EXISTS (SELECT 1 FROM decisions d WHERE d.id = t.decision_id)`, false},
	{"withdrawn_decisions", `SELECT decision_id, 'it withdraws a decision, and is not here' FROM withdrawn_decisions w
		WHERE NOT EXISTS (SELECT 1 FROM decisions d WHERE d.id = w.decision_id)`, false},
}

// InspectCrossings checks the tables about paired PCs of the store at path, like transfer.Inspect. It
// returns an empty result for a store without them. It fails with Storage if the file cannot be read.
func InspectCrossings(ctx context.Context, path string, live bool) (found Crossings, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		found = Crossings{}
		_, tables, err := schema.Read(ctx, pool)
		if err != nil || tables["messages"] == "" || tables["decisions"] == "" {
			return err
		}
		for _, odd := range oddCrossings {
			if tables[odd.table] == "" {
				continue
			}
			rows, err := pool.QueryContext(ctx, odd.query+" LIMIT ?1", maxOdd)
			err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
				row := UnreadableRow{Table: odd.table, Newer: odd.newer}
				err := rows.Scan(sqlitex.Text(&row.Key), &row.Why)
				found.Odd = append(found.Odd, row)
				return err
			})
			if err != nil {
				return err
			}
		}
		if tables["remote_outbox"] == "" {
			return nil
		}
		rows, err := pool.QueryContext(ctx, `SELECT substr(o.recipient, 1, instr(o.recipient, '/') - 1) AS host, count(*), min(m.created_at)
			FROM remote_outbox o CROSS JOIN messages m ON m.id = o.message_id AND m.recipient = o.recipient
			WHERE o.state = '`+crossingWaiting+`' AND instr(o.recipient, '/') > 1 AND typeof(m.created_at) = 'integer' GROUP BY host ORDER BY host`)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var queue Queue
			err := rows.Scan(&queue.Host, &queue.Count, &queue.Since)
			found.Waiting = append(found.Waiting, queue)
			return err
		})
	})
	return found, sqlitex.Error(path, err)
}
