package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store/transfer"
)

// checkEmptied compares the store with the newest full snapshot. Rows leave it only for
// the archive, so a table that had rows and has none was emptied from outside. A store
// that was restored or merged after the snapshot may be older, and is skipped.
func (k *checker) checkEmptied(ctx context.Context) error {
	if k.quick || k.report.isDamaged(inventory.Primary) || inventory.IsMissing(inventory.JoinHome(k.dir, inventory.Primary)) {
		return nil
	}
	found, err := inventory.Sets(inventory.JoinHome(k.dir, "backups"), inventory.SnapshotName)
	if err != nil || len(found) == 0 {
		return nil //nolint:nilerr // a folder that cannot be listed is a finding already
	}
	recoveries, err := inventory.Sets(inventory.JoinHome(k.dir, "backups"), inventory.RecoveryName)
	if err != nil || len(recoveries) > 0 && recoveries[0].CreatedAt >= found[0].CreatedAt {
		return nil //nolint:nilerr // as above
	}
	manifest, err := inventory.ReadManifest(inventory.JoinHome(k.dir, "backups/"+found[0].Path))
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	then := manifest.Counts[inventory.Primary]
	now, err := transfer.Counts(ctx, inventory.JoinHome(k.dir, inventory.Primary), k.live)
	if err != nil {
		return ctx.Err()
	}
	for _, table := range slices.Sorted(maps.Keys(then)) {
		if rows, exists := now[table]; exists && rows == 0 && then[table] > 0 && !mayEmpty(table) {
			k.findEmptied(table, then[table], found[0])
		}
	}
	return k.checkMessagesLeft(ctx, then, now, found[0])
}

func (k *checker) findEmptied(table string, rows int, snapshot inventory.Set) {
	k.find(TableEmptied, inventory.Primary, fmt.Sprintf("the table %s is empty, and had %s in backups/%s", table, bridge.Counted(rows, "row"), snapshot.Path))
}

// mayEmpty reports whether rows leave a table normally: messages to the archive, and rows
// of other programs.
func mayEmpty(table string) bool {
	return table == "messages" || table == "archived_messages" || table == "job_delivery_routes" || strings.HasPrefix(table, "history_")
}

// checkMessagesLeft checks that messages that left the store are in the archive.
func (k *checker) checkMessagesLeft(ctx context.Context, then, now map[string]int, snapshot inventory.Set) error {
	archived := 0
	if !inventory.IsMissing(inventory.JoinHome(k.dir, inventory.Archive)) {
		counts, err := transfer.Counts(ctx, inventory.JoinHome(k.dir, inventory.Archive), k.live)
		if err != nil {
			return ctx.Err()
		}
		archived = counts["archived_messages"]
	}
	had, has := then["messages"]+then["archived_messages"], now["messages"]+now["archived_messages"]+archived
	_, hasArchive := now["archived_messages"]
	if hasArchive && has < had {
		k.find(TableEmptied, inventory.Primary, fmt.Sprintf("it has %s of messages, the archive included, and had %s in backups/%s", bridge.Counted(has, "row"), bridge.Counted(had, "row"), snapshot.Path))
	}
	return nil
}

// isDamaged reports whether a database cannot be counted: its damage is already reported.
func (r Report) isDamaged(path string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Path == path && slices.Contains([]Code{
			DatabaseMissing, DatabaseEmpty, DatabaseUnreadable, DatabaseDamaged, DatabaseForeign, DatabaseNewer, DatabaseVersion, NotAFile, StoreLost,
		}, f.Code)
	})
}
