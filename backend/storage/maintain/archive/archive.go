// Package archive moves data that a home no longer needs. Old messages go to archive.db,
// and leftovers of unfinished writes to archive/orphaned. It deletes nothing.
package archive

import (
	"context"
	"fmt"
	"time"

	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/transfer"
)

// Mover moves data that one home no longer needs.
type Mover struct {
	Worker lease.Worker
	// Age is the minimum age of archived messages; 0 archives none.
	Age time.Duration
}

// Archived counts what Messages moved.
type Archived struct {
	Messages int `json:"messages"` // rows, one per recipient
}

// Messages moves messages older than Age to archive.db, even during a live broker. It
// uses the store's own locks, batch by batch. Its lock blocks only other maintenance
// (STO-07). It fails with Denied during other maintenance, and with Storage if a batch
// cannot be moved.
func (m Mover) Messages(ctx context.Context) (done Archived, err error) {
	if m.Age == 0 {
		return done, nil
	}
	now := m.Worker.Now()
	err = m.Worker.Exclusively(lease.Archive, true, func() (err error) {
		done.Messages, err = transfer.ArchiveMessages(ctx, m.Worker.Home.DB(), m.Worker.Home.Archive(), transfer.ArchiveRule{
			Before: now.Add(-m.Age).UnixMilli(), Now: now.UnixMilli(), Step: m.Worker.At,
			Told: func(moved, all int) {
				m.Worker.Progress(fmt.Sprintf("archiving messages, %d of %d", moved, all), int64(moved), int64(all))
			},
		})
		return err
	})
	return done, lease.WhileDeferred(m.Worker.Home, err)
}
