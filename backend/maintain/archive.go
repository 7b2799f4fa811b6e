package maintain

import (
	"context"

	"bridge/backend/maintain/lease"
	"bridge/backend/store"
)

// Archived says what Archive moved.
type Archived struct {
	Messages int `json:"messages"` // rows, one per recipient
}

// Archive moves messages older than ArchiveAge to archive.db, also beside a live
// broker: it works through the store's own locks, batch by batch, and its lock
// keeps only other maintenance away (STO-07).
func (c Caretaker) Archive(ctx context.Context) (done Archived, err error) {
	if c.ArchiveAge == 0 {
		return done, nil
	}
	now := c.Now()
	err = c.Worker().Exclusively(lease.Archive, true, func() (err error) {
		done.Messages, err = store.ArchiveMessages(ctx, c.Home.DB(), c.Home.Archive(), store.ArchiveRule{
			Before: now.Add(-c.ArchiveAge).UnixMilli(), Now: now.UnixMilli(), Step: c.Worker().At,
			Told: func(moved int) { c.Worker().Progress("archiving messages", int64(moved), int64(moved)) },
		})
		return err
	})
	return done, lease.WhileDeferred(c.Home, err)
}
