package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"bridge/backend/platform/ipc"
)

// growth measures whether a send gets slower as the store grows: five thousand
// stored messages against five million.
func (l *lab) growth(ctx context.Context) error {
	if l.quick {
		return nil
	}
	small, err := l.grown(ctx, "small", 5_000)
	if err != nil {
		return err
	}
	large, err := l.grown(ctx, "large", 5_000_000)
	if err != nil {
		return err
	}
	repeated, err := l.grown(ctx, "small-again", 5_000)
	if err != nil {
		return err
	}
	base := append(small, repeated...).at(0.5) // before and after, so that a drift of the disk shows on both sides
	l.add(row{what: "send with 5 million stored", measured: fmt.Sprintf("%s p50, with 5 thousand %s", large.at(0.5), base), value: ratio(large.at(0.5), base), goal: "<= 1.3 x", bound: 1.3})
	return nil
}

// grown fills a store to n messages and measures sends into it.
func (l *lab) grown(ctx context.Context, name string, n int) (elapsed times, err error) {
	b, err := l.start(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	clients, err := b.session(ctx, "from", "to")
	if err != nil {
		return nil, err
	}
	if err := b.stuff(ctx, clients[0], n); err != nil {
		return nil, err
	}
	if err := b.settled(ctx); err != nil { // days that really were left an index that has them
		return nil, err
	}
	return repeat(nil, 1000, func() error { return sendTo(ctx, clients[0], "to") })
}

// stuff writes n messages straight into the store, as earlier days would have
// left them, read and unread.
func (b *running) stuff(ctx context.Context, client *ipc.Client, n int) error {
	if err := sendTo(ctx, client, "to"); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+b.home.DB()+"?_pragma=busy_timeout(600000)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	const step = 100_000
	for done := 0; done < n; done += step {
		_, err := db.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
			INSERT INTO messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at)
			SELECT printf('01900000-%08x', i), 'past-' || (i % 50), 'past-' || ((i + 1) % 50), 'past', 'codex', 'past', printf('c-%d', i / 10), NULL, 0, ?3, 1700000000000 + i, 1700000000000 + i FROM n`,
			done, min(done+step, n), body)
		if err != nil {
			return fmt.Errorf("stuff the store: %w", err)
		}
	}
	return nil
}
