package sqlitex

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"

	"bridge/backend/platform/lifecycle"
)

const (
	// checkpointPages is the log length, in pages, from which the log is moved into
	// the database file. Hot pages are then moved once for many commits, and a
	// reopening broker reads a short log.
	checkpointPages = 1000
	// logPages is the log length, in pages, from which senders wait for a complete
	// checkpoint.
	logPages = 8 * checkpointPages
	// LogBytes is the size to which the log's file is cut at a restart. Writing
	// into an existing file is faster than growing one.
	LogBytes  = pageBytes * logPages
	pageBytes = 4096
	// restPages is how many pages may be moved while senders wait. Moving them
	// takes about as long as a few commits.
	restPages = 100
	// passes is how often the log is moved in parallel to the senders before they
	// wait. Each pass leaves fewer pages for the next.
	passes = 3
	// writesPerRound is how many writes pass between two rounds. A round updates
	// the ends of the lists of a few peers, so more writes cost it little more. A
	// reader of a conversation also reads the rows since the last round.
	writesPerRound = 256
)

// CheckpointWAL moves the log into the database file and syncs both. A broker calls
// it when it opens a store, and after each disk error before the next commit. The
// log may hold a readable commit whose sync failed or never happened. The system
// treats the pages of a failed sync as written, so a second sync proves nothing. A
// checkpoint writes and syncs them again, so a reported duplicate is really stored.
// It fails with SQLite's error if the disk refuses a write or sync.
func CheckpointWAL(ctx context.Context, on rowAsker) error {
	var busy, logged, moved int
	return on.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &logged, &moved)
}

// rowAsker is a connection or a pool of connections.
type rowAsker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkpointer works in parallel to the commits, so that no sender pays for the work.
// It updates the data derived from the rows and moves the log into the database file.
type checkpointer struct {
	writer *Writer
	keepUp func(*Tx) error
	log    *slog.Logger
	nudge  lifecycle.Signal // a second pending nudge adds nothing
	ended  chan struct{}
	cancel context.CancelFunc
	pages  atomic.Int64 // logged since the log was last moved
	count  int          // writes since the last round; only the leader uses it
}

func startCheckpointer(w *Writer, keepUp func(*Tx) error, log *slog.Logger) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{writer: w, keepUp: keepUp, log: log, nudge: lifecycle.NewSignal(), ended: make(chan struct{}), cancel: cancel}
	go c.loop(ctx)
	return c
}

// committed counts a batch and wakes the checkpointer after enough writes. The
// leader calls it after each batch, with the number of pages logged.
func (c *checkpointer) committed(writes, pages int) {
	c.pages.Add(int64(pages))
	if c.count += writes; c.count < writesPerRound {
		return
	}
	c.count = 0
	c.nudge.Notify()
}

func (c *checkpointer) stop() {
	c.cancel()
	<-c.ended
}

func (c *checkpointer) loop(ctx context.Context) {
	defer close(c.ended)
	pool := OpenAttached(WriterDSN(c.writer.path), c.writer.with, "") // a checkpoint moves both logs
	pool.SetMaxOpenConns(1)
	defer pool.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.nudge:
		}
		if err := c.writer.Do(ctx, c.keepUp); err != nil && ctx.Err() == nil {
			c.log.Warn("the lists of conversations could not be kept up; it is tried again", "err", err)
		}
		if c.pages.Load() < checkpointPages {
			continue
		}
		if err := c.checkpoint(ctx, pool); err != nil && ctx.Err() == nil {
			c.log.Warn("the store's log could not be moved into its file; it is tried again", "err", err)
		}
	}
}

// checkpoint first moves pages while senders continue, then the small rest while
// they wait. Only a completely moved log restarts from its beginning. A log that
// restarts early stays short, and a commit into it is cheaper than one that grows
// the file.
func (c *checkpointer) checkpoint(ctx context.Context, pool *sql.DB) error {
	var busy, logged, moved int
	move := func() error {
		c.pages.Store(0)
		return pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &logged, &moved)
	}
	rest := int64(0)
	for range passes {
		if err := move(); err != nil {
			return err
		}
		if rest = c.pages.Load(); rest <= restPages {
			break
		}
	}
	if rest == 0 || rest > restPages && logged < logPages {
		return nil // completely moved, or too much for now and still harmless
	}
	return c.writer.Alone(ctx, move)
}
