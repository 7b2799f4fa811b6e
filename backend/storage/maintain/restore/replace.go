package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/fulltext"
)

// Replace makes room for an empty store in place of the lost one, with the owner's
// consent. It copies everything managed to a permanent recovery set, and only then
// removes what belonged to the lost store. It returns the set. It fails with Conflict if
// the store is not lost. The next broker creates the store.
func (r Restorer) Replace(ctx context.Context) (set string, err error) {
	err = r.Worker.Exclusively(lease.Replacement, false, func() error {
		if lost, _ := check.FindLoss(ctx, r.Worker.Home); lost == nil {
			return bridge.Errorf(bridge.Conflict, "the store %s is not lost: nothing was changed", r.Worker.Home.DB())
		}
		var displaced []inventory.File
		if set, displaced, err = r.backUpCurrent(ctx, r.Worker.Home.DB(), lease.Replacement); err != nil {
			return fmt.Errorf("copy what is left of the store to a recovery set: %w", r.recordUnstarted(set, err))
		}
		if err := r.dropLeft(ctx, displaced); err != nil {
			return fmt.Errorf("take away what is left of the store (its copy is %s): %w", set, err)
		}
		return r.writeOutcome(set, true)
	})
	return set, err
}

// dropLeft removes what belonged to the lost store and was copied. Archived messages and
// other programs' data stay. Side files go first: without its log a database is older,
// but still the same.
func (r Restorer) dropLeft(ctx context.Context, copied []inventory.File) error {
	for _, file := range slices.Backward(copied) {
		base := file.Path
		for _, suffix := range inventory.SideFiles {
			base = strings.TrimSuffix(base, suffix)
		}
		switch {
		case base == inventory.History && !fulltext.OnlyIndex(ctx, r.Worker.Home.History(), false):
			if err := r.dropIndex(ctx, file.Path); err != nil {
				return err
			}
		case base == inventory.Primary, base == inventory.History, base == inventory.Sidecar, strings.HasPrefix(base, "read-journal/"):
			if err := r.Worker.Files().RemoveCopied(inventory.JoinHome(r.Worker.Home.Dir(), file.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropIndex removes the search index of the lost store from a history.db that holds more.
// An unreadable file stays unchanged: the doctor reports it.
func (r Restorer) dropIndex(ctx context.Context, path string) error {
	if path != inventory.History {
		return nil // a side file
	}
	if err := r.Worker.At("drop the search index"); err != nil {
		return err
	}
	err := fulltext.Drop(ctx, r.Worker.Home.History())
	if bridge.CodeOf(err) == bridge.Storage {
		return nil
	}
	return err
}
