package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
)

// Merged reports what a merge did.
type Merged struct {
	Snapshot string `json:"snapshot"` // absolute
	// Recovery is the permanent set of the earlier files; "" if nothing was missing, so
	// that nothing changed.
	Recovery string `json:"recovery"`
	transfer.Merged
}

// Merge adds the messages that the home lacks of a backup of messages (STO-16): missing
// rows only, without overwriting. It first reads the whole backup and compares it. It
// fails with Conflict if this home has other content for a message. Then it copies every
// managed file to a permanent recovery set, as before a restore, and adds the rows in one
// transaction.
func (r Restorer) Merge(ctx context.Context, typed string) (done Merged, err error) {
	dir, err := inventory.FindMessages(r.Worker.Home, typed)
	if err != nil {
		return done, err
	}
	if err := check.VerifyMessages(ctx, dir, r.Worker.ProgressOf("verifying the backup")); err != nil {
		return done, err
	}
	if err := r.Worker.Home.Ensure(); err != nil {
		return done, err
	}
	err = r.Worker.Exclusively(lease.Merge, false, func() error {
		rule := transfer.Merge{
			Store: r.Worker.Home.DB(), Archive: r.Worker.Home.Archive(), From: filepath.Join(dir, inventory.MessagesFile), Step: r.Worker.At,
			Told: func(done, all int) { r.Worker.Progress("merging messages", int64(done), int64(all)) },
		}
		done.Snapshot = dir
		if err := r.ensureStore(ctx); err != nil {
			return err
		}
		if done.Merged, err = transfer.PreviewMerge(ctx, rule); err != nil {
			return err
		}
		if done.Missing() == 0 {
			return r.settleMerge(dir)
		}
		set, _, err := r.backUpCurrent(ctx, dir, lease.Merge)
		if err != nil {
			return fmt.Errorf("copy the present files to a recovery set: %w", r.recordUnstarted(set, err))
		}
		done.Recovery = set
		return r.mergeInto(ctx, rule, set)
	})
	return done, lease.WhileDeferred(r.Worker.Home, err)
}

// ensureStore creates an empty store if the home has lost its own, and no snapshot would
// restore more than messages.
func (r Restorer) ensureStore(ctx context.Context) error {
	switch exists, logged := inventory.SizeOf(r.Worker.Home.DB()) > 0, inventory.SizeOf(r.Worker.Home.DB()+"-wal") > 0; {
	case exists:
		return nil
	case logged:
		return bridge.Errorf(bridge.Storage, "%s is gone or empty, but the log beside it is there: restore a full snapshot first, then merge", r.Worker.Home.DB())
	}
	if lost, _ := check.FindLoss(ctx, r.Worker.Home); lost != nil && lost.HasSnapshot() {
		return lost.Refusal()
	}
	db, err := store.Open(ctx, r.Worker.Home.DB(), store.Options{Now: r.Worker.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return db.Close()
}

// mergeInto merges and records the outcome in the recovery set. A failure has changed
// nothing, because the store rolled the rows back.
func (r Restorer) mergeInto(ctx context.Context, rule transfer.Merge, set string) error {
	_, err := transfer.MergeMessages(ctx, rule)
	return errors.Join(err, r.writeOutcome(set, err == nil))
}

// settleMerge records the outcome of an interrupted merge of the same backup after all
// its rows are in.
func (r Restorer) settleMerge(dir string) error {
	newest, interrupted, err := inventory.Interrupted(r.Worker.Home.Backups())
	if err != nil || !interrupted {
		return err
	}
	described, err := inventory.ReadRecovery(newest)
	if err == nil && described.Work == lease.Merge && described.Snapshot == dir {
		return r.writeOutcome(newest, true)
	}
	return nil // of another work, or unreadable: the doctor keeps reporting it
}
