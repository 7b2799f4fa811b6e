package store

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
)

const (
	// checkpointBytes is the size of the write-ahead log from which its pages
	// are moved into the database file: large enough that hot pages are moved
	// once for many commits, small enough that a reopening reads it at once.
	checkpointBytes = 8 << 20
	// commitsPerLook is how many commits pass between two looks at the log.
	commitsPerLook = 32
)

// checkpointer moves the log into the database file beside the commits, so
// that no sender pays for it.
type checkpointer struct {
	writer *writer
	log    *slog.Logger
	nudge  chan struct{} // capacity 1: a nudge while one waits adds nothing
	ended  chan struct{}
	cancel context.CancelFunc
	count  int // commits since the last nudge; the leader's
}

func startCheckpointer(w *writer, log *slog.Logger) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{writer: w, log: log, nudge: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel}
	go c.loop(ctx)
	return c
}

// committed is called by the leader after each commit.
func (c *checkpointer) committed() {
	if c.count++; c.count < commitsPerLook {
		return
	}
	c.count = 0
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

func (c *checkpointer) stop() {
	c.cancel()
	<-c.ended
}

func (c *checkpointer) loop(ctx context.Context) {
	defer close(c.ended)
	pool, err := sql.Open("sqlite", writerDSN(c.writer.path))
	if err != nil {
		c.log.Error("the store's log can not be moved into its file", "error", err)
		return
	}
	pool.SetMaxOpenConns(1)
	defer pool.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.nudge:
		}
		if info, err := os.Stat(c.writer.path + "-wal"); err != nil || info.Size() < checkpointBytes {
			continue
		}
		if err := c.checkpoint(ctx, pool); err != nil && ctx.Err() == nil {
			c.log.Warn("the store's log could not be moved into its file; it is tried again", "error", err)
		}
	}
}

// checkpoint first moves what it can while senders go on, then the little that
// came meanwhile while they wait: only a log that is moved whole starts again
// from its beginning, and so stays bounded.
func (c *checkpointer) checkpoint(ctx context.Context, pool *sql.DB) error {
	const passive = "PRAGMA wal_checkpoint(PASSIVE)"
	if _, err := pool.ExecContext(ctx, passive); err != nil {
		return err
	}
	return c.writer.alone(ctx, func() error {
		_, err := pool.ExecContext(ctx, passive)
		return err
	})
}
