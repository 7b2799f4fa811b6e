package sqlitex

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"

	"bridge/backend/platform/lifecycle"
)

const (
	// checkpointPages is how many pages are logged before the log is moved into
	// the database file: enough that hot pages are moved once for many commits,
	// few enough that a reopening reads the log at once.
	checkpointPages = 1000
	// logPages is the length of the log from which senders wait until it is
	// moved whole.
	logPages = 8 * checkpointPages
	// LogBytes is what the log's file is cut to when it starts again; a file
	// that is there already is written faster than one that grows.
	LogBytes  = pageBytes * logPages
	pageBytes = 4096
	// restPages is what may be moved at any time while senders wait: moving it
	// takes about as long as a few commits.
	restPages = 100
	// passes is how often the log is moved beside the senders before they wait:
	// each leaves less for the next.
	passes = 3
	// writesPerRound is how many writes pass between two rounds. What a round touches, the
	// ends of the lists of a few peers, is nearly the same after few writes as after many;
	// and who reads a conversation reads what came since the last one besides.
	writesPerRound = 256
)

// CheckpointWAL moves what the log holds into the database file and syncs both. A
// broker does so when it opens a store and after each error of the disk, before
// it commits anything more, because what can be read need not be on the disk:
// the log may hold a commit whose sync failed, or never came before its broker
// died, and the system takes the pages of a failed sync for written ones, so that
// syncing again proves nothing. Moved, they are written and synced anew. Whoever
// is told that a message is stored already is told the truth then.
func CheckpointWAL(ctx context.Context, on rowAsker) error {
	var busy, logged, moved int
	return on.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &logged, &moved)
}

// rowAsker is a connection, or a pool of one.
type rowAsker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkpointer does beside the commits what no sender should pay for: it keeps up
// what is derived from the rows and moves the log into the database file.
type checkpointer struct {
	writer *Writer
	keepUp func(*Tx) error
	log    *slog.Logger
	nudge  lifecycle.Signal // a nudge while one waits adds nothing
	ended  chan struct{}
	cancel context.CancelFunc
	pages  atomic.Int64 // logged since the log was last moved
	count  int          // writes since the last round; the leader's
}

func startCheckpointer(w *Writer, keepUp func(*Tx) error, log *slog.Logger) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{writer: w, keepUp: keepUp, log: log, nudge: lifecycle.NewSignal(), ended: make(chan struct{}), cancel: cancel}
	go c.loop(ctx)
	return c
}

// committed is called by the leader after each batch of writes, with the number
// of pages that it logged.
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

// checkpoint moves what it can while senders go on, then the little that came
// meanwhile while they wait: only a log that is moved whole starts again from
// its beginning. A log that starts again soon stays short, and a commit into it
// is cheaper than one that makes the file grow.
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
		return nil // moved whole, or too much for now and no harm yet
	}
	return c.writer.Alone(ctx, move)
}
