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
	// writesPerRound is how many writes pass between two rounds.
	writesPerRound = 64
)

// housekeeper does beside the commits what no sender should pay for: it keeps
// the lists of conversations up and moves the log into the database file.
type housekeeper struct {
	writer *writer
	log    *slog.Logger
	nudge  chan struct{} // capacity 1: a nudge while one waits adds nothing
	ended  chan struct{}
	cancel context.CancelFunc
	count  int // writes since the last round; the leader's
}

func startHousekeeper(w *writer, log *slog.Logger) *housekeeper {
	ctx, cancel := context.WithCancel(context.Background())
	h := &housekeeper{writer: w, log: log, nudge: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel}
	go h.loop(ctx)
	return h
}

// committed is called by the leader after each batch of writes.
func (h *housekeeper) committed(writes int) {
	if h.count += writes; h.count < writesPerRound {
		return
	}
	h.count = 0
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

func (h *housekeeper) stop() {
	h.cancel()
	<-h.ended
}

func (h *housekeeper) loop(ctx context.Context) {
	defer close(h.ended)
	pool, err := sql.Open("sqlite", writerDSN(h.writer.path))
	if err != nil {
		h.log.Error("the store's log can not be moved into its file", "error", err)
		return
	}
	pool.SetMaxOpenConns(1)
	defer pool.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.nudge:
		}
		if err := h.writer.do(ctx, followMessages); err != nil && ctx.Err() == nil {
			h.log.Warn("the lists of conversations could not be kept up; it is tried again", "error", err)
		}
		if info, err := os.Stat(h.writer.path + "-wal"); err != nil || info.Size() < checkpointBytes {
			continue
		}
		if err := h.checkpoint(ctx, pool); err != nil && ctx.Err() == nil {
			h.log.Warn("the store's log could not be moved into its file; it is tried again", "error", err)
		}
	}
}

// checkpoint first moves what it can while senders go on, then the little that
// came meanwhile while they wait: only a log that is moved whole starts again
// from its beginning, and so stays bounded.
func (h *housekeeper) checkpoint(ctx context.Context, pool *sql.DB) error {
	const passive = "PRAGMA wal_checkpoint(PASSIVE)"
	if _, err := pool.ExecContext(ctx, passive); err != nil {
		return err
	}
	return h.writer.alone(ctx, func() error {
		_, err := pool.ExecContext(ctx, passive)
		return err
	})
}
