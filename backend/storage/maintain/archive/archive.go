// Package archive moves what a home needs no more to where it is kept: messages
// that are old to archive.db, and what writes that never ended left behind to
// archive/orphaned. Nothing is deleted.
package archive

import (
	"context"
	"time"

	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/transfer"
)

// Mover moves what one home needs no more.
type Mover struct {
	Worker lease.Worker
	// Age is how old messages must be for the archive to take them; 0 takes none.
	Age time.Duration
}

// Archived says what Messages moved.
type Archived struct {
	Messages int `json:"messages"` // rows, one per recipient
}

// Messages moves messages older than Age to archive.db, also beside a live
// broker: it works through the store's own locks, batch by batch, and its lock
// keeps only other maintenance away (STO-07).
func (m Mover) Messages(ctx context.Context) (done Archived, err error) {
	if m.Age == 0 {
		return done, nil
	}
	now := m.Worker.Now()
	err = m.Worker.Exclusively(lease.Archive, true, func() (err error) {
		done.Messages, err = transfer.ArchiveMessages(ctx, m.Worker.Home.DB(), m.Worker.Home.Archive(), transfer.ArchiveRule{
			Before: now.Add(-m.Age).UnixMilli(), Now: now.UnixMilli(), Step: m.Worker.At,
			Told: func(moved int) { m.Worker.Progress("archiving messages", int64(moved), int64(moved)) },
		})
		return err
	})
	return done, lease.WhileDeferred(m.Worker.Home, err)
}
